package main

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/internal/dynamofake"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// replicated is a table that has a copy in another region.
type replicated struct{ *dynamofake.DB }

func (r replicated) DescribeTable(ctx context.Context, in *dynamodb.DescribeTableInput, opts ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	out, err := r.DB.DescribeTable(ctx, in, opts...)
	if err == nil {
		out.Table.Replicas = []types.ReplicaDescription{{RegionName: aws.String("us-west-2")}}
	}
	return out, err
}

// The service does not start on a global table, and does not wait for it to be another.
func TestAGlobalTableIsRefusedAtTheStart(t *testing.T) {
	log := new(logBuffer)
	s, err := openReplica(t.Context(), parsed(t, twoPerMinute), replicated{newTable(t)}, log)
	if err == nil {
		s.close(context.Background())
		t.Fatal("the service started")
	}
	if !errors.Is(err, limiter.ErrInvalid) || !strings.Contains(err.Error(), "global table") || !strings.Contains(err.Error(), "us-west-2") {
		t.Errorf("got %v", err)
	}
	if strings.Contains(log.String(), "start delayed") {
		t.Errorf("the start waited:\n%s", log.String())
	}
}
