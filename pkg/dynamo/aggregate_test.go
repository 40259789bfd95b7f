package dynamo_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/aggregator"
	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/limiter/storetest"
	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
)

// fed is a table whose stream aggregators read.
type fed struct {
	endpoint string
	client   dynamo.Client
	table    string
	stream   *dynamo.Stream
	log      lockedText
}

// lockedText is a log that can be read.
type lockedText struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lockedText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func newFed(t *testing.T) *fed {
	t.Helper()
	server := dynamotest.Start(t)
	f := &fed{client: server.Client(t), table: dynamotest.TableName(t)}
	if err := dynamo.CreateTable(t.Context(), f.client, f.table); err != nil {
		t.Fatal(err)
	}
	streams, err := dynamo.NewStreamsClient(t.Context(), dynamo.ClientConfig{Endpoint: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	if f.stream, err = dynamo.OpenStream(t.Context(), f.client, streams, f.table, nil); err != nil {
		t.Fatal(err)
	}
	f.endpoint = server.URL
	return f
}

// aggregate runs a poller until the context is done.
func (f *fed) aggregate(ctx context.Context, t *testing.T, owner string, change func(*aggregator.Config)) *aggregator.Poller {
	t.Helper()
	cfg := aggregator.Config{
		Source: f.stream, Snapshots: f.stream, Splits: f.stream, Leases: f.stream, Owner: owner, Logger: slog.New(slog.NewTextHandler(&f.log, nil)),
		Term: 600 * time.Millisecond, Rescan: 50 * time.Millisecond, Idle: 10 * time.Millisecond, FlushAfter: 30 * time.Millisecond, FlushRecords: 64,
	}
	if change != nil {
		change(&cfg)
	}
	p, err := aggregator.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Run(ctx); err != nil {
		t.Errorf("%s: %v", owner, err)
	}
	return p
}

// listed returns the usage of a window that the store lists, by entity, resource and limit.
func listed(t *testing.T, s *dynamo.Store, w limiter.UsageWindow) map[string]int64 {
	t.Helper()
	all := map[string]int64{}
	for p := (limiter.Page{}); ; {
		page, err := s.ListUsage(t.Context(), "default", limiter.UsageFilter{Window: w}, p)
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range page.Items {
			for _, l := range u.Limits {
				all[fmt.Sprint(u.Entity, u.Resource, l.Limit)] += l.Tokens
			}
		}
		p.After = page.Next
		if p.After == "" {
			return all
		}
	}
}

// book is the consumption that a test counts.
type book struct {
	mu   sync.Mutex
	used map[limiter.UsageWindow]map[string]int64
}

func (b *book) add(op *limiter.Op) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, w := range limiter.UsageWindows() {
		if b.used[w] == nil {
			b.used[w] = map[string]int64{}
		}
		for _, sp := range op.Spends {
			b.used[w][fmt.Sprint(op.Bucket.Entity, op.Bucket.Resource, sp.Limit)] += sp.Take + sp.Charge - sp.Refund
		}
	}
}

// loadStores has stores take, charge and give back under a policy of leases, and counts the admissions in
// a book.
func loadStores(t *testing.T, calls int, lease limiter.LeasePolicy, b *book, stores ...*dynamo.Store) {
	t.Helper()
	limits := limitsOf(t, limiter.PerMinute("rpm", 20_000), limiter.PerHour("tph", 20_000_000))
	variants := []uint64{0, 1, limiter.ShadowVariants + 1}
	var work sync.WaitGroup
	for i, s := range stores {
		for range 4 {
			work.Go(func() {
				r := rand.New(rand.NewPCG(uint64(i), 7)) // #nosec G404 -- of a test
				for range calls {
					op := limiter.Op{
						Bucket: limiter.BucketKey{Namespace: "default", Entity: fmt.Sprint("key/", r.IntN(3)), Resource: "gpt-4", Variant: variants[r.IntN(len(variants))]},
						Limits: limits, Generation: 1, Spends: []limiter.Spend{{Limit: "rpm", Take: tokens(1)}, {Limit: "tph", Take: tokens(1 + r.Int64N(400))}},
						Lease: lease,
					}
					switch r.IntN(5) {
					case 0:
						op.Spends = []limiter.Spend{{Limit: "tph", Charge: tokens(r.Int64N(50))}}
					case 1:
						op.Spends = []limiter.Spend{{Limit: "tph", Refund: tokens(r.Int64N(20))}}
					}
					admitted, err := s.Take(t.Context(), time.Now(), []limiter.Op{op})
					if err != nil {
						t.Errorf("take: %v", err)
						return
					}
					if admitted && !op.Bucket.Shadow() {
						b.add(&op)
					}
				}
			})
		}
	}
	work.Wait()
}

// errDead is the error of each call of a process that was killed.
var errDead = errors.New("the process is dead")

// faults make an aggregator fail: calls that are not made, or whose answer is lost. A process that is killed makes no
// call any more: its records, its positions and its leases stay as they are.
type faults struct {
	*dynamo.Stream

	mu    sync.Mutex
	dice  *rand.Rand
	kill  func() // ends the process between snapshots and position; nil = it is not killed
	dead  atomic.Bool
	after atomic.Int64 // calls that a killed process has tried
}

func (f *faults) roll(n int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.dice.IntN(n)
}

// alive returns an error, errDead, for a process that was killed.
func (f *faults) alive() error {
	if f.dead.Load() {
		f.after.Add(1)
		return errDead
	}
	return nil
}

func (f *faults) Add(ctx context.Context, c *aggregator.Change) (aggregator.Sequence, error) {
	if err := f.alive(); err != nil {
		return "", err
	}
	switch f.roll(8) {
	case 0:
		return "", errors.New("not sent")
	case 1:
		_, _ = f.Stream.Add(ctx, c)
		return "", errors.New("the answer is lost")
	}
	return f.Stream.Add(ctx, c)
}

func (f *faults) Write(ctx context.Context, before, after aggregator.Lease) error {
	if err := f.alive(); err != nil {
		return err
	}
	if f.kill != nil && after.Position != before.Position && f.roll(3) == 0 {
		f.dead.Store(true)
		f.kill()
		return errDead
	}
	return f.Stream.Write(ctx, before, after)
}

// splitsOf returns how many shards the stores have split.
func splitsOf(stores []*dynamo.Store) (splits int64) {
	for _, s := range stores {
		splits += s.Stats().Splits
	}
	return splits
}

// Usage is exactly the admissions less refunds, for every limit and window, and nothing of shadows. Shards
// split, calls fail, processes crash between a snapshot and its position, and others take over.
func TestUsageIsWhatWasAdmitted(t *testing.T) {
	f := newFed(t)
	stores := make([]*dynamo.Store, 3)
	for i := range stores {
		stores[i] = newStore(t, f.client, func(cfg *dynamo.Config) {
			cfg.Table, cfg.ShardUnits, cfg.Quiet, cfg.Leases = f.table, 5, time.Second, true
		})
	}
	want := book{used: map[limiter.UsageWindow]map[string]int64{}}
	ctx, stop := context.WithCancel(t.Context())
	var processes sync.WaitGroup
	var repeated, killed, tried atomic.Int64
	for i := range 2 {
		processes.Go(func() {
			for life := 0; ctx.Err() == nil; life++ {
				alive, die := context.WithCancel(ctx)
				bad := &faults{Stream: f.stream, dice: rand.New(rand.NewPCG(uint64(i), uint64(life)))} // #nosec G404 -- of a test
				if life < 4 {
					bad.kill = die
				}
				p := f.aggregate(alive, t, fmt.Sprintf("process %d life %d", i, life), func(cfg *aggregator.Config) { cfg.Snapshots, cfg.Leases = bad, bad })
				die()
				if bad.dead.Load() {
					killed.Add(1)
				}
				tried.Add(bad.after.Load())
				repeated.Add(p.Stats().Repeated)
			}
		})
	}
	for round := 0; round < 50 && splitsOf(stores) == 0; round++ { // a split needs a second of load
		loadStores(t, 20, limiter.LeasePolicy{None: true}, &want, stores...)
	}
	loadStores(t, 100, limiter.LeasePolicy{}, &want, stores...)
	closing(t, stores[1:]...)
	waitFor(t, func() bool { return maps.Equal(want.used[limiter.UsageHour], listed(t, stores[0], limiter.UsageHour)) })
	stop()
	processes.Wait()
	for _, w := range limiter.UsageWindows() {
		if diff := cmp.Diff(want.used[w], listed(t, stores[0], w)); diff != "" {
			t.Errorf("%v (-admitted +usage):\n%s", w, diff)
		}
	}
	splits, served := splitsOf(stores), int64(0)
	for _, s := range stores {
		served += s.Stats().Served
	}
	if splits == 0 || served == 0 || repeated.Load() == 0 || killed.Load() < 2 {
		t.Errorf("%d splits, %d decisions from leases, %d repeated records, %d processes killed: the test needs some of each", splits, served, repeated.Load(), killed.Load())
	}
	t.Logf("%d splits, %d decisions from leases, %d repeated records, %d processes killed, which tried %d calls more", splits, served, repeated.Load(), killed.Load(), tried.Load())
	closing(t, stores[0])
}

// drained is a store whose usage is read from the stream before it is listed.
type drained struct {
	*dynamo.Store

	stream    *dynamo.Stream
	positions map[string]aggregator.Sequence
}

func (d *drained) ListUsage(ctx context.Context, namespace string, f limiter.UsageFilter, p limiter.Page) (page limiter.PageOf[limiter.UsageSnapshot], err error) {
	shards, err := d.stream.Shards(ctx)
	for i := 0; err == nil && i < len(shards); i++ {
		err = d.drain(ctx, shards[i].ID)
	}
	if err != nil {
		return page, err
	}
	return d.Store.ListUsage(ctx, namespace, f, p)
}

// drain counts the records of a shard up to now.
func (d *drained) drain(ctx context.Context, shard string) error {
	b := aggregator.NewBatch(shard, limiter.UsageWindows(), func(limiter.UsageWindow) time.Duration { return 0 })
	iterator, err := d.stream.Open(ctx, shard, d.positions[shard])
	for err == nil && iterator != "" {
		var records []aggregator.Record
		if records, iterator, err = d.stream.Read(ctx, iterator); len(records) == 0 {
			break
		}
		for i := range records {
			records[i].Time = time.Time{} // that of the machine is not that of the suite
			if image := records[i].New; image != nil {
				records[i].Time = time.UnixMilli(max(image.Taken, image.Exact))
			}
			b.Add(&records[i])
			d.positions[shard] = records[i].Sequence
		}
	}
	if err != nil {
		return err
	}
	_, err = b.Flush(ctx, d.stream)
	return err
}

// The usage that comes through the stream answers the same queries as that of the embedded store.
func TestUsageOfTheStream(t *testing.T) {
	storetest.RunUsage(t, func(t *testing.T) storetest.UsageStore {
		f := newFed(t)
		s := newStore(t, f.client, func(cfg *dynamo.Config) { cfg.Table = f.table })
		t.Cleanup(func() { closing(t, s) })
		return storetest.UsageStore{
			Store: s,
			Usage: &drained{s, f.stream, map[string]aggregator.Sequence{}},
			Consume: func(t *testing.T, at time.Time, bucket limiter.BucketKey, amounts map[string]int64) {
				t.Helper()
				storetest.Consume(t, s, at, bucket, amounts)
			},
		}
	})
}

// The error of a shard that DynamoDB does not have differs from that of a stream that
// it does not have.
func TestOpenOfAShardThatIsNotThere(t *testing.T) {
	f := newFed(t)
	if _, err := f.stream.Open(t.Context(), "shardId-00000001700000000000-0a1b2c3d", ""); !errors.Is(err, aggregator.ErrDropped) {
		t.Errorf("error %v", err)
	}
}

// waitFor waits until a condition holds, for as long as the test may.
func waitFor(t *testing.T, holds func() bool) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-ctx.Done():
			t.Error("it takes too long")
			return
		case <-tick.C:
		}
	}
}
