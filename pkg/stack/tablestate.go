package stack

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// TableState is the state of a table.
type TableState struct {
	Status    string        `json:"status"`              // such as ACTIVE
	Latency   time.Duration `json:"latency_ns"`          // of the question
	Items     int64         `json:"items"`               // DynamoDB counts about every six hours
	Bytes     int64         `json:"bytes"`               // the same
	Protected bool          `json:"deletion_protection"` // DynamoDB refuses to delete it
}

// Table returns the state of a stack's table.
func (m *Manager) Table(ctx context.Context, name string) (TableState, error) {
	began := m.cfg.Now()
	out, err := m.cfg.Table.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &name})
	if err != nil {
		return TableState{}, fmt.Errorf("table %s: %w", name, err)
	}
	return TableState{
		Status: string(out.Table.TableStatus), Latency: m.cfg.Now().Sub(began),
		Items: aws.ToInt64(out.Table.ItemCount), Bytes: aws.ToInt64(out.Table.TableSizeBytes),
		Protected: aws.ToBool(out.Table.DeletionProtectionEnabled),
	}, nil
}
