package valkey_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/valkey"
	"github.com/ratelimit/ratelimit/test/kit/valkeytest"
)

const (
	loadReplicas = 3
	loadCallers  = 16 // of a replica
	loadLimit    = 2000
	loadDeadline = 500 * time.Millisecond
	settle       = 700 * time.Millisecond // that a load runs before a fault, and after it
	recovery     = 8 * time.Second        // within which a store takes again
)

// load is what three replicas ask of one bucket at once, as fast as they can.
type load struct {
	stores   []*valkey.Store
	limits   *limiter.Limits
	began    time.Time
	admitted atomic.Int64
	by       [loadReplicas]atomic.Int64 // admitted, by store
	failure  atomic.Pointer[error]      // the last one
	denied   atomic.Int64
	failed   atomic.Int64
	slowest  atomic.Int64 // ns
	last     atomic.Int64 // Unix ns of the last decision
	gap      atomic.Int64 // longest time without one, ns
	work     sync.WaitGroup
	stop     context.CancelFunc
}

// startLoad opens the stores, and begins. The limit is loadLimit a second.
func startLoad(t *testing.T, address string, change func(*valkey.Config)) *load {
	t.Helper()
	limits, err := limiter.NewLimits(limiter.PerSecond("l", loadLimit))
	if err != nil {
		t.Fatal(err)
	}
	l := &load{limits: limits}
	name := nameOf(t)
	for range loadReplicas {
		s, err := valkey.Open(t.Context(), configOf(t, &valkeytest.Server{Address: address}, func(cfg *valkey.Config) {
			cfg.Name, cfg.Attempt, cfg.Budget = name, 0, 0
			change(cfg)
		}))
		if err != nil {
			t.Fatal(err)
		}
		l.stores = append(l.stores, s)
	}
	ctx, stop := context.WithCancel(t.Context())
	l.stop = stop
	l.began = time.Now()
	l.last.Store(l.began.UnixNano())
	for i := range l.stores {
		for range loadCallers {
			l.work.Go(func() {
				for ctx.Err() == nil {
					l.take(i) //nolint:contextcheck // a call ends after the load
				}
			})
		}
	}
	return l
}

// take makes one call, and counts its outcome.
func (l *load) take(i int) {
	ctx, cancel := context.WithTimeout(context.Background(), loadDeadline)
	defer cancel()
	began := time.Now()
	op := limiter.Op{
		Bucket: limiter.BucketKey{Namespace: "ns", Entity: "hot", Resource: "r"}, Limits: l.limits,
		Spends: []limiter.Spend{{Limit: "l", Take: limiter.Milli}},
	}
	admitted, err := l.stores[i].Take(ctx, began, []limiter.Op{op})
	ended := time.Now()
	raise(&l.slowest, int64(ended.Sub(began)))
	switch {
	case err != nil:
		l.failed.Add(1)
		l.failure.Store(&err)
		time.Sleep(time.Millisecond) // as a caller that is told that the store is unavailable
		return
	case admitted:
		l.admitted.Add(1)
		l.by[i].Add(1)
	default:
		l.denied.Add(1)
		time.Sleep(200 * time.Microsecond)
	}
	raise(&l.gap, ended.UnixNano()-l.last.Swap(ended.UnixNano()))
}

// raise raises a number to at least n.
func raise(a *atomic.Int64, n int64) {
	for old := a.Load(); n > old && !a.CompareAndSwap(old, n); old = a.Load() {
	}
}

// end ends the load, and returns how many tokens were admitted above the bound, negative for fewer.
func (l *load) end(t *testing.T) int64 {
	t.Helper()
	l.stop()
	l.work.Wait()
	took := time.Since(l.began)
	most := loadLimit + int64(took.Seconds()*loadLimit)
	for _, s := range l.stores {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		if err := s.Close(ctx); err != nil && !errors.Is(err, limiter.ErrUnavailable) {
			t.Error(err)
		}
		cancel()
	}
	t.Logf("admitted %d of at most %d in %v, denied %d, failed %d, slowest call %v, longest gap %v", l.admitted.Load(), most, took.Round(time.Millisecond),
		l.denied.Load(), l.failed.Load(), time.Duration(l.slowest.Load()).Round(time.Millisecond), time.Duration(l.gap.Load()).Round(time.Millisecond))
	return l.admitted.Load() - most
}

// under runs a fault at load, and returns how many tokens were admitted above the bound. It checks that
// no call took longer than its deadline and a little, and that the load goes on afterwards.
func under(t *testing.T, address string, change func(*valkey.Config), fault func(l *load)) (l *load, over int64) {
	t.Helper()
	l = startLoad(t, address, change)
	time.Sleep(settle)
	fault(l)
	l.awaitDecision(t)
	time.Sleep(settle)
	over = l.end(t)
	if slowest := time.Duration(l.slowest.Load()); slowest > loadDeadline+lateness {
		t.Errorf("a call took %v, its deadline is %v", slowest, loadDeadline)
	}
	return l, over
}

// awaitDecision waits until each store writes to its server again, and has taken a token since now.
func (l *load) awaitDecision(t *testing.T) {
	t.Helper()
	for i, s := range l.stores {
		before := l.by[i].Load()
		for end := time.Now().Add(recovery); ; time.Sleep(5 * time.Millisecond) {
			_, err := s.Secret(t.Context(), "of-the-load", []byte("secret of the load"))
			if err == nil && l.by[i].Load() > before {
				break
			}
			if time.Now().After(end) {
				t.Errorf("the store %d has taken %d for %v, and writes with %v; its state is %+v", i, l.by[i].Load()-before, recovery, err, s.State())
				return
			}
		}
	}
}

// withLeases runs a test without leases and with them.
func withLeases(t *testing.T, test func(t *testing.T, change func(*valkey.Config))) {
	t.Helper()
	for _, leases := range []bool{false, true} {
		t.Run(map[bool]string{false: "without leases", true: "with leases"}[leases], func(t *testing.T) {
			t.Parallel()
			test(t, func(cfg *valkey.Config) { cfg.Leases = leases })
		})
	}
}

// A server that is killed, and whose replica lacks the writes of the last 1.5 s, takes the place of the
// first. What replicas of the program remember is not given twice.
func TestFailover(t *testing.T) {
	t.Parallel()
	withLeases(t, func(t *testing.T, change func(*valkey.Config)) {
		for range failovers {
			failOver(t, change)
		}
	})
}

func failOver(t *testing.T, change func(*valkey.Config)) {
	t.Helper()
	first, second := valkeytest.Start(t), valkeytest.Start(t)
	second.Follow(first)
	proxy := valkeytest.NewProxy(t, first.Address)
	_, over := under(t, proxy.Address, change, func(*load) {
		time.Sleep(2*time.Second - settle)
		second.Must("REPLICAOF", "127.0.0.1", "1") // it keeps what it has
		time.Sleep(1500 * time.Millisecond)
		first.Kill()
		second.Must("REPLICAOF", "NO", "ONE")
		proxy.Point(second.Address)
		time.Sleep(3*time.Second - settle)
	})
	if most := int64(loadReplicas * loadCallers); over > most {
		t.Errorf("%d tokens too many, want at most a write of each replica: %d", over, most)
	}
	first.Kill()
	second.Kill()
}
