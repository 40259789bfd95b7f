package dynamo_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ratelimit/ratelimit/pkg/aggregator"
	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
)

// billed counts the writes of a client.
type billed struct {
	dynamo.Client

	writes atomic.Int64
}

func (c *billed) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	c.writes.Add(1)
	return c.Client.UpdateItem(ctx, in, opts...)
}

func (c *billed) PutItem(ctx context.Context, in *dynamodb.PutItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	c.writes.Add(1)
	return c.Client.PutItem(ctx, in, opts...)
}

// BenchmarkAggregation measures the writes of an aggregator beside those of the decisions, for a million
// decisions: three replicas, DynamoDB Local, some seconds of load, three windows, a flush a second. The default is a flush
// each 10 s, which takes half a minute of load.
func BenchmarkAggregation(b *testing.B) {
	for _, tt := range []struct {
		name     string
		entities int
		lease    limiter.LeasePolicy
		flush    time.Duration
	}{
		{"leases/1_key", 1, limiter.LeasePolicy{}, time.Second},
		{"leases/20_keys", 20, limiter.LeasePolicy{}, time.Second},
		{"none/20_keys", 20, limiter.LeasePolicy{None: true}, time.Second},
		{"leases/1_key/default_flush", 1, limiter.LeasePolicy{}, aggregator.DefaultFlushAfter},
		{"leases/20_keys/default_flush", 20, limiter.LeasePolicy{}, aggregator.DefaultFlushAfter},
		{"none/20_keys/default_flush", 20, limiter.LeasePolicy{None: true}, aggregator.DefaultFlushAfter},
	} {
		b.Run(tt.name, func(b *testing.B) {
			for b.Loop() {
				decisions, writes, aggregated := measureAggregation(b, tt.entities, tt.lease, tt.flush)
				perMillion := 1e6 / float64(decisions)
				b.ReportMetric(float64(decisions), "decisions")
				b.ReportMetric(float64(writes)*perMillion, "writes/M")
				b.ReportMetric(float64(aggregated)*perMillion, "aggregator-writes/M")
			}
		})
	}
}

// measureAggregation returns how many decisions replicas made in some seconds, their writes, and those of
// an aggregator.
func measureAggregation(b *testing.B, entities int, lease limiter.LeasePolicy, flush time.Duration) (decisions, writes, aggregated int64) {
	b.Helper()
	server := dynamotest.Start(b)
	table, client := dynamotest.TableName(b), server.Client(b)
	if err := dynamo.CreateTable(b.Context(), client, table); err != nil {
		b.Fatal(err)
	}
	streams, err := dynamo.NewStreamsClient(b.Context(), dynamo.ClientConfig{Endpoint: server.URL})
	if err != nil {
		b.Fatal(err)
	}
	meter := &billed{Client: client}
	stream, err := dynamo.OpenStream(b.Context(), meter, streams, table, nil)
	if err != nil {
		b.Fatal(err)
	}
	p, err := aggregator.New(aggregator.Config{Source: stream, Snapshots: stream, Leases: stream, Owner: "o", FlushAfter: flush, Idle: 100 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	running, stop := context.WithCancel(b.Context())
	var aggregates sync.WaitGroup
	aggregates.Go(func() { _ = p.Run(running) })
	decisions, writes = loadReplicas(b, server, table, entities, lease, time.Second+3*flush)
	stop()
	aggregates.Wait()
	return decisions, writes, meter.writes.Load()
}

// loadReplicas has three replicas decide for some seconds. It returns their decisions and their writes.
func loadReplicas(b *testing.B, server *dynamotest.Server, table string, entities int, lease limiter.LeasePolicy, length time.Duration) (decisions, writes int64) {
	b.Helper()
	limits, err := limiter.NewLimits(limiter.PerSecond("rps", 1_000_000), limiter.PerMinute("tpm", 1_000_000_000))
	if err != nil {
		b.Fatal(err)
	}
	var made atomic.Int64
	var load sync.WaitGroup
	stores, end := make([]*dynamo.Store, 3), time.Now().Add(length)
	for i := range stores {
		s, err := dynamo.New(server.Client(b), dynamo.Config{Table: table, Leases: true, Attempt: 5 * time.Second, Budget: 20 * time.Second})
		if err != nil {
			b.Fatal(err)
		}
		stores[i] = s
		for range 4 {
			load.Go(func() {
				r := rand.New(rand.NewPCG(uint64(i), 1)) // #nosec G404 -- of a test
				for time.Now().Before(end) {
					op := limiter.Op{
						Bucket: limiter.BucketKey{Namespace: "default", Entity: fmt.Sprint("key/", r.IntN(entities)), Resource: "gpt-4"}, Lease: lease,
						Limits: limits, Generation: 1, Spends: []limiter.Spend{{Limit: "rps", Take: tokens(1)}, {Limit: "tpm", Take: tokens(100)}},
					}
					if _, err := s.Take(b.Context(), time.Now(), []limiter.Op{op}); err == nil {
						made.Add(1)
					}
				}
			})
		}
	}
	load.Wait()
	for _, s := range stores {
		writes += s.Stats().Writes
		if err := s.Close(context.WithoutCancel(b.Context())); err != nil {
			b.Error(err)
		}
	}
	return made.Load(), writes
}
