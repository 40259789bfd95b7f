package stack

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/dynamo"
)

// TableState is the state of a table.
type TableState struct {
	Status    string        `json:"status"`              // such as ACTIVE
	Latency   time.Duration `json:"latency_ns"`          // of the question
	Items     int64         `json:"items"`               // DynamoDB counts about every six hours
	Bytes     int64         `json:"bytes"`               // the same
	Protected bool          `json:"deletion_protection"` // DynamoDB refuses to delete it
}

// tableFor completes options of an existing table, and refuses a table of another owner:
// CloudFormation would fail for it.
func (m *Manager) tableFor(ctx context.Context, o *Options) error {
	out, err := m.cfg.Table.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &o.Name})
	_, missing := errors.AsType[*types.ResourceNotFoundException](err)
	switch {
	case missing && o.ExistingTable:
		return fmt.Errorf("%w: existing_table: table %s does not exist", ErrInvalid, o.Name)
	case missing:
		return nil
	case err != nil:
		return fmt.Errorf("table %s: %w", o.Name, err)
	case !o.ExistingTable:
		return fmt.Errorf("%w: table %s exists, and is of no stack: deploy onto it with existing_table, or choose another name", ErrInvalid, o.Name)
	}
	o.StreamARN = aws.ToString(out.Table.LatestStreamArn)
	if o.StreamARN == "" && (o.Aggregator.On || o.IAM.Process) {
		return fmt.Errorf("%w: existing_table: table %s has no stream, which an aggregator reads", ErrInvalid, o.Name)
	}
	return dynamo.CheckTable(ctx, m.cfg.Table, o.Name)
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
