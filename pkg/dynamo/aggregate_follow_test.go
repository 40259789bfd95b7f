package dynamo_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/aggregator"
	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
)

// switchStream has the table have a stream, or none.
func (f *fed) switchStream(t *testing.T, on bool) {
	t.Helper()
	spec := &types.StreamSpecification{StreamEnabled: &on}
	if on {
		spec.StreamViewType = types.StreamViewTypeNewAndOldImages
	}
	if _, err := f.client.(*dynamodb.Client).UpdateTable(t.Context(), &dynamodb.UpdateTableInput{TableName: &f.table, StreamSpecification: spec}); err != nil {
		t.Fatal(err)
	}
}

// corrupt sets an attribute of a lease of the stream.
func (f *fed) corrupt(t *testing.T, attribute, text string) {
	t.Helper()
	out, err := f.client.(*dynamodb.Client).Scan(t.Context(), &dynamodb.ScanInput{
		TableName: &f.table, FilterExpression: aws.String("begins_with(PK, :p) AND attribute_not_exists(done)"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":p": &types.AttributeValueMemberS{Value: "_/STREAM#"}},
	})
	if err != nil || len(out.Items) != 1 {
		t.Fatalf("%d leases, %v", len(out.Items), err)
	}
	item := out.Items[0]
	item[attribute] = &types.AttributeValueMemberS{Value: text}
	if _, err := f.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &f.table, Item: item}); err != nil {
		t.Fatal(err)
	}
}

// A stream that is switched off is counted to its end, and one that is switched on later from its begin. A position
// that is none has the shard read again, and each record counts once.
func TestAStreamIsSwitchedOffAndOn(t *testing.T) {
	f := newFed(t)
	s := newStore(t, f.client, func(cfg *dynamo.Config) { cfg.Table = f.table })
	t.Cleanup(func() { closing(t, s) })
	want := book{used: map[limiter.UsageWindow]map[string]int64{}}
	counted := func(when string) {
		t.Helper()
		loadStores(t, 5, limiter.LeasePolicy{None: true}, &want, s)
		waitFor(t, func() bool { return maps.Equal(want.used[limiter.UsageDay], listed(t, s, limiter.UsageDay)) })
		if diff := cmp.Diff(want.used[limiter.UsageDay], listed(t, s, limiter.UsageDay)); diff != "" {
			t.Fatalf("%s (-admitted +usage):\n%s\n%s", when, diff, f.log.String())
		}
	}
	var processes sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	processes.Go(func() { f.aggregate(ctx, t, "a", nil) })
	counted("at the begin")
	f.switchStream(t, false)
	waitFor(t, func() bool { return strings.Contains(f.log.String(), "no other is found") })
	f.switchStream(t, true)
	counted("of the other stream")
	stop()
	processes.Wait()
	f.corrupt(t, "position", "no-number")
	ctx, stop = context.WithCancel(t.Context())
	processes.Go(func() { f.aggregate(ctx, t, "b", nil) })
	counted("after a bad position")
	stop()
	processes.Wait()
	if log := f.log.String(); !strings.Contains(log, "read again from its first record") || strings.Contains(log, "were counted: their usage is lost") {
		t.Error(log)
	}
}

// Records that the stream has dropped are one gap that is counted, and those that are there count. DynamoDB Local drops
// none: a proxy answers as AWS does.
func TestATrimmedStream(t *testing.T) {
	f := newFed(t)
	trim := dynamofake.Fault{Kind: dynamofake.Fail, Err: &smithy.GenericAPIError{Code: "TrimmedDataAccessException", Message: "too old"}}
	var trims atomic.Int64
	proxy := dynamotest.NewProxy(t, f.endpoint, func(c dynamofake.Call) dynamofake.Fault {
		if body, _ := c.Input.([]byte); c.Op == "GetShardIterator" && strings.Contains(string(body), "AFTER_SEQUENCE_NUMBER") {
			trims.Add(1)
			return trim
		}
		return dynamofake.Fault{}
	})
	streams, err := dynamo.NewStreamsClient(t.Context(), dynamo.ClientConfig{Endpoint: proxy.URL})
	if err != nil {
		t.Fatal(err)
	}
	if f.stream, err = dynamo.OpenStream(t.Context(), f.client, streams, f.table, nil); err != nil {
		t.Fatal(err)
	}
	s := newStore(t, f.client, func(cfg *dynamo.Config) { cfg.Table = f.table })
	t.Cleanup(func() { closing(t, s) })
	want := book{used: map[limiter.UsageWindow]map[string]int64{}}
	for life := range 2 {
		loadStores(t, 5, limiter.LeasePolicy{None: true}, &want, s)
		ctx, stop := context.WithCancel(t.Context())
		var p *aggregator.Poller
		var process sync.WaitGroup
		process.Go(func() { p = f.aggregate(ctx, t, fmt.Sprint("process ", life), nil) })
		waitFor(t, func() bool { return maps.Equal(want.used[limiter.UsageDay], listed(t, s, limiter.UsageDay)) })
		stop()
		process.Wait()
		if got := p.Stats(); got.Losses != int64(life) || trims.Load() != int64(life) {
			t.Errorf("life %d: %+v, %d trims", life, got, trims.Load())
		}
	}
}
