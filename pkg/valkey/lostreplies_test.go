package valkey_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/valkey"
	"github.com/ratelimit/ratelimit/test/kit/valkeytest"
)

// kinds are limits of one bucket. Each has spends of one kind alone.
var kinds = []string{"charge", "refund", "take"}

const (
	countedCapacity = 1_000_000_000
	countedBefore   = countedCapacity / 2 // tokens of each limit that are spent at the start
)

// counted is a load of spends, and how many of each kind were applied.
type counted struct {
	limits    *limiter.Limits
	applied   [3]atomic.Int64
	uncertain [3]atomic.Int64
	failed    atomic.Int64
	late      atomic.Int64
	wrong     atomic.Pointer[error]
}

func (c *counted) op(kind int, millis int64) limiter.Op {
	spend := limiter.Spend{Limit: kinds[kind]}
	switch kind {
	case 0:
		spend.Charge = millis
	case 1:
		spend.Refund = millis
	default:
		spend.Take = millis
	}
	return limiter.Op{Bucket: limiter.BucketKey{Namespace: "ns", Entity: "counted", Resource: "r"}, Limits: c.limits, Spends: []limiter.Spend{spend}}
}

// spend makes one call, and counts its outcome.
func (c *counted) spend(s *valkey.Store, kind int) {
	ctx, cancel := context.WithTimeout(context.Background(), loadDeadline)
	defer cancel()
	ops := []limiter.Op{c.op(kind, limiter.Milli)}
	admitted, err := s.Take(ctx, time.Now(), ops)
	switch {
	case err == nil:
		if admitted {
			c.applied[kind].Add(1)
		}
		if ops[0].Late {
			c.late.Add(1)
		}
	case errors.Is(err, limiter.ErrUncertain):
		c.uncertain[kind].Add(1)
	case errors.Is(err, limiter.ErrUnavailable):
		c.failed.Add(1)
		time.Sleep(time.Millisecond)
	default:
		c.wrong.Store(&err)
	}
}

// newCounted makes the bucket, with half of its tokens spent.
func newCounted(t *testing.T, s *valkey.Store) *counted {
	t.Helper()
	all := make([]limiter.Limit, len(kinds))
	for i, kind := range kinds {
		all[i] = limiter.Custom(kind, countedCapacity, 1, 366*24*time.Hour)
	}
	limits, err := limiter.NewLimits(all...)
	if err != nil {
		t.Fatal(err)
	}
	c := &counted{limits: limits}
	op := c.op(0, 0)
	op.Spends = nil
	for _, kind := range kinds {
		op.Spends = append(op.Spends, limiter.Spend{Limit: kind, Charge: countedBefore * limiter.Milli})
	}
	if _, err := s.Take(t.Context(), time.Now(), []limiter.Op{op}); err != nil {
		t.Fatal(err)
	}
	return c
}

// A call whose reply is lost is applied at most once.
func TestLostReplies(t *testing.T) {
	t.Parallel()
	withLeases(t, func(t *testing.T, change func(*valkey.Config)) {
		server := valkeytest.Start(t)
		proxy := valkeytest.NewProxy(t, server.Address)
		cfg := configOf(t, &valkeytest.Server{Address: proxy.Address}, func(cfg *valkey.Config) {
			cfg.Attempt, cfg.Budget = 0, 0
			change(cfg)
		})
		stores := make([]*valkey.Store, loadReplicas)
		for i := range stores {
			var err error
			if stores[i], err = valkey.Open(t.Context(), cfg); err != nil {
				t.Fatal(err)
			}
		}
		c := newCounted(t, stores[0])
		c.run(t, stores, proxy)
		cfg.Connection.Addresses = []string{server.Address}
		s, err := valkey.Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close(t.Context()) }()
		lost, owed := lostBy(stores)
		c.compare(t, s, lost, owed)
		checkConsistent(t, server, cfg.Name)
	})
}

// run spends by all stores while replies get lost, and closes the stores.
func (c *counted) run(t *testing.T, stores []*valkey.Store, proxy *valkeytest.Proxy) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var work sync.WaitGroup
	for _, s := range stores {
		for i := range loadCallers {
			work.Go(func() {
				for ctx.Err() == nil {
					c.spend(s, i%len(kinds)) //nolint:contextcheck // a call ends after the load
				}
			})
		}
	}
	for range 8 {
		time.Sleep(150 * time.Millisecond)
		proxy.Mute(100 * time.Millisecond)
	}
	time.Sleep(settle)
	stop()
	work.Wait()
	for _, s := range stores {
		ctx, cancel := context.WithTimeout(context.Background(), recovery)
		if err := s.Close(ctx); err != nil {
			t.Error(err)
		}
		cancel()
	}
}

// lostBy returns how many tokens of takes stores have counted as lost, and how many of calls whose callers had their
// answer before.
func lostBy(stores []*valkey.Store) (taken, owed int64) {
	for _, s := range stores {
		stats := s.Stats()
		taken += stats.LostUnknown + stats.LostTwice + stats.LostLease
		owed += stats.LostOwed
	}
	return taken, owed
}

// compare compares the bucket with what was applied, but for the tokens that the stores have counted as lost.
func (c *counted) compare(t *testing.T, s *valkey.Store, lost, owed int64) {
	t.Helper()
	if err := c.wrong.Load(); err != nil {
		t.Errorf("a call fails with %v", *err)
	}
	page, err := s.ListBuckets(t.Context(), time.Now(), "ns", limiter.BucketFilter{Entity: "counted"}, limiter.Page{})
	if err != nil || len(page.Items) != 1 {
		t.Fatalf("ListBuckets: %d, %v", len(page.Items), err)
	}
	for _, l := range page.Items[0].Limits {
		kind := slices.Index(kinds, l.Limit.Name)
		spent := (countedCapacity-countedBefore)*limiter.Milli - l.Tokens
		if kind == 1 {
			spent = -spent
		}
		least := c.applied[kind].Load() * limiter.Milli
		most := least + c.uncertain[kind].Load()*limiter.Milli
		t.Logf("%s: %d applied of %d to %d, leased %d", l.Limit.Name, spent, least, most, l.Leased)
		if kind == 2 {
			most += lost + owed // a late denial gives back what its write took
		}
		if spent < least-limiter.Milli-owed || spent > most {
			t.Errorf("%s: %d were applied, want %d to %d, and %d are counted as owed and lost", l.Limit.Name, spent, least, most, owed)
		}
	}
	t.Logf("%d calls failed, %d were late; lost are %d of takes and %d that were owed", c.failed.Load(), c.late.Load(), lost, owed)
}
