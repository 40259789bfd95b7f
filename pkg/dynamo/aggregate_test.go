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
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/internal/dynamotest"
	"github.com/ratelimit/ratelimit/pkg/aggregator"
	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// fed is a table whose stream aggregators read.
type fed struct {
	client dynamo.Client
	table  string
	stream *dynamo.Stream
	log    lockedText
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
	return f
}

// aggregate runs a poller until the context is done.
func (f *fed) aggregate(ctx context.Context, t *testing.T, owner string, change func(*aggregator.Config)) *aggregator.Poller {
	t.Helper()
	cfg := aggregator.Config{
		Source: f.stream, Snapshots: f.stream, Leases: f.stream, Owner: owner, Logger: slog.New(slog.NewTextHandler(&f.log, nil)),
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
		if p.After = page.Next; p.After == "" {
			return all
		}
	}
}

// book is what a test knows to be consumed.
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

// loadStores has stores take, charge and give back, and books what was admitted.
func loadStores(t *testing.T, calls int, b *book, stores ...*dynamo.Store) {
	t.Helper()
	limits := limitsOf(t, limiter.PerMinute("rpm", 1000), limiter.PerDay("tpd", 200_000))
	var work sync.WaitGroup
	for i, s := range stores {
		for range 4 {
			work.Go(func() {
				r := rand.New(rand.NewPCG(uint64(i), 7)) // #nosec G404 -- of a test
				for range calls {
					op := limiter.Op{
						Bucket: limiter.BucketKey{Namespace: "default", Entity: fmt.Sprint("key/", r.IntN(3)), Resource: "gpt-4", Variant: r.Uint64N(2)},
						Limits: limits, Generation: 1, Spends: []limiter.Spend{{Limit: "rpm", Take: tokens(1)}, {Limit: "tpd", Take: tokens(1 + r.Int64N(400))}},
					}
					switch r.IntN(5) {
					case 0:
						op.Spends = []limiter.Spend{{Limit: "tpd", Charge: tokens(r.Int64N(50))}}
					case 1:
						op.Spends = []limiter.Spend{{Limit: "tpd", Refund: tokens(r.Int64N(20))}}
					}
					admitted, err := s.Take(t.Context(), time.Now(), []limiter.Op{op})
					if err != nil {
						t.Errorf("take: %v", err)
						return
					}
					if admitted {
						b.add(&op)
					}
				}
			})
		}
	}
	work.Wait()
}

// faults make an aggregator fail: calls that are not made, or whose answer is lost.
type faults struct {
	aggregator.Snapshots
	aggregator.Leases

	mu    sync.Mutex
	dice  *rand.Rand
	crash func() // ends the process between snapshots and position; nil = it does not
}

func (f *faults) roll(n int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.dice.IntN(n)
}

func (f *faults) Add(ctx context.Context, c *aggregator.Change) (aggregator.Sequence, error) {
	switch f.roll(8) {
	case 0:
		return "", errors.New("not sent")
	case 1:
		_, _ = f.Snapshots.Add(ctx, c)
		return "", errors.New("the answer is lost")
	}
	return f.Snapshots.Add(ctx, c)
}

func (f *faults) Write(ctx context.Context, before, after aggregator.Lease) error {
	if f.crash != nil && after.Position != before.Position && f.roll(3) == 0 {
		f.crash()
		return context.Canceled
	}
	return f.Leases.Write(ctx, before, after)
}

// Usage is exactly what was admitted, less refunds, for every limit and window: with shards that
// split, calls that fail, processes that die between a snapshot and its position, and
// others that take over.
func TestUsageIsWhatWasAdmitted(t *testing.T) {
	f := newFed(t)
	stores := make([]*dynamo.Store, 3)
	for i := range stores {
		stores[i] = newStore(t, f.client, func(cfg *dynamo.Config) { cfg.Table, cfg.ShardUnits = f.table, 30 })
	}
	want := book{used: map[limiter.UsageWindow]map[string]int64{}}
	ctx, stop := context.WithCancel(t.Context())
	var processes sync.WaitGroup
	for i := range 2 {
		processes.Go(func() {
			for life := 0; ctx.Err() == nil; life++ {
				alive, die := context.WithCancel(ctx)
				f.aggregate(alive, t, fmt.Sprintf("process %d life %d", i, life), func(cfg *aggregator.Config) {
					bad := &faults{Snapshots: f.stream, Leases: f.stream, dice: rand.New(rand.NewPCG(uint64(i), uint64(life)))} // #nosec G404 -- of a test
					if life < 5 {
						bad.crash = die
					}
					cfg.Snapshots, cfg.Leases = bad, bad
				})
				die()
			}
		})
	}
	loadStores(t, 60, &want, stores...)
	closing(t, stores[1:]...)
	waitFor(t, func() bool { return maps.Equal(want.used[limiter.UsageHour], listed(t, stores[0], limiter.UsageHour)) })
	stop()
	processes.Wait()
	for _, w := range limiter.UsageWindows() {
		if diff := cmp.Diff(want.used[w], listed(t, stores[0], w)); diff != "" {
			t.Errorf("%v (-admitted +usage):\n%s", w, diff)
		}
	}
	closing(t, stores[0])
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
