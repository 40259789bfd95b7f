package main

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
	"github.com/ratelimit/ratelimit/test/kit/proctest"
	"github.com/ratelimit/ratelimit/test/kit/programtest"
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
	log := new(proctest.LogBuffer)
	s, err := openReplica(t.Context(), programtest.Parsed(t, programtest.TwoPerMinute), replicated{newTable(t)}, log)
	if err == nil {
		s.Close(context.Background())
		t.Fatal("the service started")
	}
	if !errors.Is(err, limiter.ErrInvalid) || !strings.Contains(err.Error(), "global table") || !strings.Contains(err.Error(), "us-west-2") {
		t.Errorf("got %v", err)
	}
	if strings.Contains(log.String(), "start delayed") {
		t.Errorf("the start waited:\n%s", log.String())
	}
}
