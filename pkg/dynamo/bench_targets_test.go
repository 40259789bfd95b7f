//go:build bench && !race

package dynamo_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/benchtable"
	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
)

// TestBenchTargets measures the promises of this package, on DynamoDB Local; make
// bench runs it.
func TestBenchTargets(t *testing.T) {
	server := dynamotest.Start(t)
	var table benchtable.Table
	name := dynamotest.TableName(t)
	near := newBench(t, server, name, 0)
	near.warm(t)
	far := newBench(t, server, name, networkLatency)
	table.Add(far.quiet(t))
	table.Add(far.cascade(t))
	for _, row := range slices.Concat(near.hot(t), benchLeases(t, server, name)) {
		table.Add(row)
	}
	if err := table.Write(os.Stdout); err != nil {
		t.Fatal(err)
	}
	if table.Failed() {
		t.Error("a target was missed")
	}
}

// networkLatency is added to every call where latencies are compared: about the
// latency of DynamoDB inside its region. Without it the results would show the
// processor time that DynamoDB Local needs on the same machine for a long expression
// and a short one.
const networkLatency = 5 * time.Millisecond

// warmWrites is how many writes it takes until DynamoDB Local's code is compiled.
const warmWrites = 20_000

// slow is a client whose calls take longer.
type slow struct {
	*dynamodb.Client
	latency time.Duration
}

func (c slow) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	if c.latency > 0 {
		time.Sleep(c.latency)
	}
	return c.Client.UpdateItem(ctx, in, opts...)
}

// bench is a store on a table, with a client that counts.
type bench struct {
	server *dynamotest.Server
	client slow
	table  string
	store  *dynamo.Store
	limits *limiter.Limits
	bare   atomic.Int64
}

// newBench is a store on a table, which is made if there is none. All of a run share
// one: writes to one table slow the writes to the next in DynamoDB Local.
func newBench(t *testing.T, server *dynamotest.Server, table string, latency time.Duration) *bench {
	t.Helper()
	b := &bench{server: server, table: table}
	clock := dynamo.NewClock(nil, 0)
	client, err := dynamo.NewClient(t.Context(), dynamo.ClientConfig{Endpoint: server.URL, Clock: clock, ConnectTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	b.client = slow{client, latency}
	if err := dynamo.CreateTable(t.Context(), b.client, b.table); err != nil {
		t.Fatal(err)
	}
	b.store = newStore(t, b.client, func(cfg *dynamo.Config) { cfg.Table, cfg.Clock, cfg.ShardUnits = b.table, clock, 1<<40 })
	t.Cleanup(func() { closing(t, b.store) })
	b.limits = limitsOf(t, limiter.PerSecond("rps", 1_000_000), limiter.PerMinute("rpm", 100_000_000), limiter.PerMinute("tpm", 100_000_000), limiter.PerDay("tpd", 1_000_000_000))
	return b
}

// op takes one of each of four limits.
func (b *bench) op(entity string) limiter.Op {
	o := limiter.Op{Bucket: limiter.BucketKey{Namespace: "default", Entity: entity, Resource: "gpt-4"}, Limits: b.limits, Generation: 1}
	for _, name := range []string{"rps", "rpm", "tpm", "tpd"} {
		o.Spends = append(o.Spends, limiter.Spend{Limit: name, Take: tokens(1)})
	}
	return o
}

func (b *bench) take(t *testing.T, entities ...string) {
	ops := make([]limiter.Op, len(entities))
	for i, e := range entities {
		ops[i] = b.op(e)
	}
	if ok, err := b.store.Take(context.Background(), time.Now(), ops); err != nil || !ok {
		t.Fatal(ok, err)
	}
}

// update is a bare UpdateItem: it counts on an item of its own, under a condition.
func (b *bench) update(t *testing.T) {
	n := b.bare.Add(1)
	if _, err := b.client.UpdateItem(context.Background(), bareUpdate(b.table, "bare", n)); err != nil {
		t.Fatal(err)
	}
}

func bareUpdate(table, item string, n int64) *dynamodb.UpdateItemInput {
	return &dynamodb.UpdateItemInput{
		TableName:                 aws.String(table),
		Key:                       map[string]types.AttributeValue{"PK": &types.AttributeValueMemberS{Value: item}, "SK": &types.AttributeValueMemberS{Value: "#STATE"}},
		UpdateExpression:          aws.String("ADD tk :one SET rf = :n"),
		ConditionExpression:       aws.String("attribute_not_exists(PK) OR tk > :zero"),
		ReturnValues:              types.ReturnValueAllNew,
		ExpressionAttributeValues: map[string]types.AttributeValue{":one": &types.AttributeValueMemberN{Value: "1"}, ":n": &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}, ":zero": &types.AttributeValueMemberN{Value: "0"}},
	}
}

// warm has DynamoDB Local compile the code that the comparisons run.
func (b *bench) warm(t *testing.T) {
	const callers = 4
	var group sync.WaitGroup
	for i := range callers {
		group.Go(func() {
			for range warmWrites / callers / 2 {
				b.take(t, fmt.Sprint("warm-", i))
				b.update(t)
			}
		})
	}
	group.Wait()
}

// quiet compares decisions on a bucket without other callers with bare writes.
func (b *bench) quiet(t *testing.T) benchtable.Row {
	const most = 1.2
	b.take(t, "quiet")
	before := b.store.Stats()
	decisions := 0
	ratio, ns, bare := benchtable.Compare(60,
		func(n int) {
			decisions += n
			for range n {
				b.take(t, "quiet")
			}
		},
		func(n int) {
			for range n {
				b.update(t)
			}
		})
	after := b.store.Stats()
	writes, reads := after.Writes-before.Writes, after.Reads-before.Reads
	return benchtable.Row{
		Name:     "DynamoDB, quiet bucket",
		Measured: fmt.Sprintf("%.2f× a bare UpdateItem (%.0f µs, bare %.0f µs); %d writes and %d reads for %d decisions", ratio, ns/1000, bare/1000, writes, reads, decisions),
		Target:   fmt.Sprintf("at most %.1f×, 1 UpdateItem a decision, no read", most),
		OK:       ratio <= most && writes == int64(decisions) && reads == 0,
	}
}

// cascade compares decisions on an entity and its parent with bare writes.
func (b *bench) cascade(t *testing.T) benchtable.Row {
	const most = 1.3
	b.take(t, "child", "parent")
	before := b.store.Stats()
	decisions := 0
	ratio, ns, bare := benchtable.Compare(60,
		func(n int) {
			decisions += n
			for range n {
				b.take(t, "child", "parent")
			}
		},
		func(n int) {
			for range n {
				b.update(t)
			}
		})
	writes := b.store.Stats().Writes - before.Writes
	return benchtable.Row{
		Name:     "DynamoDB, with a parent",
		Measured: fmt.Sprintf("%.2f× a bare UpdateItem (%.0f µs, bare %.0f µs); %d writes for %d decisions", ratio, ns/1000, bare/1000, writes, decisions),
		Target:   fmt.Sprintf("at most %.1f×, 2 in parallel", most),
		OK:       ratio <= most && writes == 2*int64(decisions),
	}
}

// hot compares 256 callers on one bucket with the same callers that write once each.
func (b *bench) hot(t *testing.T) []benchtable.Row {
	const callers, turns, turn, mostWrites, leastGain = 256, 6, time.Second, 0.01, 40
	b.take(t, "hot")
	before := b.store.Stats()
	gains := make([]float64, turns)
	var decisions, single int64
	for i := range turns {
		many := load(callers, turn, func() { b.take(t, "hot") })
		each := load(callers, turn, func() {
			if _, err := b.client.UpdateItem(context.Background(), bareUpdate(b.table, "hot-bare", 1)); err != nil {
				t.Error(err)
			}
		})
		decisions, single = decisions+many, single+each
		gains[i] = float64(many) / float64(max(each, 1))
	}
	slices.Sort(gains)
	gain := (gains[turns/2-1] + gains[turns/2]) / 2
	writes := float64(b.store.Stats().Writes-before.Writes) / float64(decisions)
	seconds := int64(turns * turn / time.Second)
	return []benchtable.Row{
		{
			Name:     "DynamoDB, hot bucket, writes a decision",
			Measured: fmt.Sprintf("%.4f, %d callers, %d decisions", writes, callers, decisions),
			Target:   fmt.Sprintf("at most %.2f", mostWrites), OK: writes <= mostWrites,
		},
		{
			Name:     "DynamoDB, hot bucket, throughput",
			Measured: fmt.Sprintf("%.0f× one write a decision (%d/s against %d/s)", gain, decisions/seconds, single/seconds),
			Target:   fmt.Sprintf("at least %d×", leastGain), OK: gain >= leastGain,
		},
	}
}

// load has callers do something for a time, and returns how often they did.
func load(callers int, d time.Duration, do func()) int64 {
	var n atomic.Int64
	var group sync.WaitGroup
	end := time.Now().Add(d)
	for range callers {
		group.Go(func() {
			for time.Now().Before(end) {
				do()
				n.Add(1)
			}
		})
	}
	group.Wait()
	return n.Load()
}
