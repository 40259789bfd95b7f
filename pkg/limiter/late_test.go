package limiter_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/limiter/storetest"
)

// slow is a store whose answers take time. It decides late, by its rule, what it does not
// answer before the deadline; everything is there at once otherwise.
type slow struct {
	limiter.Store

	read, take time.Duration
	admit      bool // what a late decision is

	mu    sync.Mutex
	asked []limiter.Op // of the last Take
}

// newSlow returns a store that answers at once. The test ends when its reads have.
func newSlow(t *testing.T) *slow {
	t.Helper()
	t.Cleanup(func() { time.Sleep(time.Second) })
	return &slow{Store: storetest.NewReference(), admit: true}
}

// pass waits for d, or until ctx is done. A wait of nothing makes no timer: timers that are
// due at once, in many goroutines of one bubble, crash the race detector of Go 1.26.
func pass(ctx context.Context, d time.Duration) error {
	if d > 0 && ctx.Err() == nil {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
		}
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", limiter.ErrUnavailable, err)
	}
	return nil
}

func (s *slow) Read(ctx context.Context, namespace string, refs []limiter.Ref, records []limiter.Record) (uint64, error) {
	if err := pass(ctx, s.read); err != nil {
		return 0, err
	}
	return s.Store.Read(ctx, namespace, refs, records)
}

func (s *slow) Take(ctx context.Context, now time.Time, ops []limiter.Op) (bool, error) {
	s.mu.Lock()
	s.asked = append([]limiter.Op(nil), ops...)
	s.mu.Unlock()
	if pass(ctx, s.take) == nil && ctx.Err() == nil {
		return s.Store.Take(ctx, now, ops)
	}
	admitted, err := s.Store.Take(context.WithoutCancel(ctx), now, ops)
	for i := range ops {
		ops[i].Late = true
		for j := range ops[i].Spends {
			sp := &ops[i].Spends[j]
			sp.Exceeded = !s.admit
			if sp.Exceeded {
				sp.Bucket.Tokens = 0
			}
		}
	}
	return admitted && s.admit, err
}

// last returns the only op of the last Take.
func (s *slow) last(t *testing.T) limiter.Op {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.asked) != 1 {
		t.Fatalf("%d ops, want 1", len(s.asked))
	}
	return s.asked[0]
}

// verdict is what a decision says of who made it.
type verdict struct {
	Admitted bool
	Late     bool
	Policy   limiter.Policy
	Capacity int64 // of the only limit; 0 = none
}

func verdictOf(d *limiter.Decision) verdict {
	v := verdict{Admitted: d.Admitted, Late: d.Late, Policy: d.Policy}
	if len(d.Statuses) == 1 {
		v.Capacity = d.Statuses[0].Limit.Capacity
	}
	return v
}

// asks decides a request and requires the verdict, within the budget.
func asks(t *testing.T, l *limiter.Limiter, req *limiter.Request, want verdict) *limiter.Decision {
	t.Helper()
	start := time.Now()
	d := decide(t, l, start, req)
	if diff := cmp.Diff(want, verdictOf(d)); diff != "" {
		t.Errorf("verdict (-want +got):\n%s%v", diff, d.Unavailable)
	}
	if took := time.Since(start); took > limiter.DefaultTimeout {
		t.Errorf("the decision took %v, the budget is %v", took, limiter.DefaultTimeout)
	}
	return d
}

// A decision that the store makes late is a decision: no policy has a part in it, and the
// next one is not denied because of it.
func TestALateDecisionIsTheStores(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlow(t)
		l := newLimiter(t, limiter.Config{Store: s}, limiter.Static{System: set(t, limiter.PerMinute("rpm", 10)), OnUnavailable: limiter.Deny})
		asks(t, l, take("a", "m", "rpm", 1), verdict{Admitted: true, Capacity: 10})
		s.take = time.Hour
		d := asks(t, l, take("a", "m", "rpm", 1), verdict{Admitted: true, Late: true, Capacity: 10})
		if d.Unavailable != nil || d.Statuses[0].Available != 8*limiter.Milli {
			t.Errorf("got %v, cause %v", brief(d), d.Unavailable)
		}
		if got := d.Holdings(nil, take("a", "m", "rpm", 1), 0); len(got) != 1 {
			t.Errorf("holdings of a late decision: got %v, want one", got)
		}
		s.admit = false
		if d := asks(t, l, take("a", "m", "rpm", 1), verdict{Late: true, Capacity: 10}); d.Reason != limiter.ReasonExhausted {
			t.Errorf("got %v", brief(d))
		}
		s.take = 0
		asks(t, l, take("a", "m", "rpm", 1), verdict{Admitted: true, Capacity: 10}) // no denial was learnt
	})
}

// A decision that is used again is late no more, nor are its ops.
func TestLateIsReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlow(t)
		l := newLimiter(t, limiter.Config{Store: s}, limiter.Static{System: set(t, limiter.PerMinute("rpm", 10))})
		d := new(limiter.Decision)
		for _, wait := range []time.Duration{0, time.Hour, 0, time.Hour} {
			s.take = wait
			if err := l.Decide(t.Context(), time.Now(), take("a", "m", "rpm", 1), d); err != nil {
				t.Fatal(err)
			}
			if s.last(t).Late {
				t.Error("the store was handed an op that is late")
			}
			if want := wait > 0; d.Late != want {
				t.Errorf("a store that takes %v: late is %t, want %t", wait, d.Late, want)
			}
		}
	})
}

// Records that are read in 40 ms are read, once for all calls that want them, though no
// Records that are too old, and those that a change has named, stand in for what a slow
// A policy decides where the limits are known neither from the store nor from the file.
func TestUnknownLimitsAreForThePolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlow(t)
		l := newLimiter(t, limiter.Config{Store: s}, limiter.Static{System: set(t, limiter.PerMinute("other", 10))})
		s.read = 40 * time.Millisecond
		d := asks(t, l, take("a", "m", "rpm", 1), verdict{Admitted: true, Policy: limiter.Allow})
		if !errors.Is(d.Unavailable, limiter.ErrUnavailable) || d.MissingLimit != "" {
			t.Errorf("cause %v, missing limit %q", d.Unavailable, d.MissingLimit)
		}
		time.Sleep(time.Second)
		if d := asks(t, l, take("a", "m", "rpm", 1), verdict{}); d.Reason != limiter.ReasonNotConfigured {
			t.Errorf("when the records are read: got %v", brief(d))
		}
	})
}

// A decision that no bucket has a part in is late too, when its limits were not read.
func TestUnlimitedIsLateToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlow(t)
		l := newLimiter(t, limiter.Config{Store: s}, limiter.Static{System: set(t, limiter.Unlimited("rpm"))})
		s.read = 40 * time.Millisecond
		asks(t, l, take("a", "m", "rpm", 1), verdict{Admitted: true, Late: true})
		time.Sleep(s.read)
		asks(t, l, take("a", "m", "rpm", 1), verdict{Admitted: true})
	})
}

// What a read brings that began before a change, or before the cache was invalidated, is
// An outage is the store's to tell: then the policy decides, whatever was last seen.
func TestAnOutageIsForThePolicy(t *testing.T) {
	for _, fault := range []storetest.Fault{storetest.FailBefore, storetest.FailAfter} {
		for _, method := range []storetest.Method{storetest.Read, storetest.Take} {
			synctest.Test(t, func(t *testing.T) {
				faulty := storetest.NewFaulty(newSlow(t), nil)
				l := newLimiter(t, limiter.Config{Store: faulty}, limiter.Static{System: set(t, limiter.PerMinute("rpm", 10)), OnUnavailable: limiter.Deny})
				asks(t, l, take("a", "m", "rpm", 1), verdict{Admitted: true, Capacity: 10})
				time.Sleep(limiter.DefaultCacheTTL)
				faulty.Use(storetest.Always(fault, method))
				asks(t, l, take("a", "m", "rpm", 1), verdict{Policy: limiter.Deny})
				faulty.Use(nil)
				asks(t, l, take("a", "m", "rpm", 1), verdict{Admitted: true, Capacity: 10})
			})
		}
	}
}

// A policy's decision is not late, though the limits were read late.
func TestAPolicysDecisionIsNotLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlow(t)
		l := newLimiter(t, limiter.Config{Store: storetest.NewFaulty(s, storetest.Always(storetest.FailBefore, storetest.Take))}, limiter.Static{
			System: set(t, limiter.PerMinute("rpm", 10)), OnUnavailable: limiter.Deny,
		})
		s.read = 40 * time.Millisecond
		asks(t, l, take("a", "m", "rpm", 1), verdict{Policy: limiter.Deny})
	})
}

// A store that says nothing at all is asked by one read for the same records, and given up
// Nobody waits for a call that is canceled, so it is not late.
func TestCanceledCallsAreNotLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlow(t)
		l := newLimiter(t, limiter.Config{Store: s}, limiter.Static{System: set(t, limiter.PerMinute("rpm", 10)), OnUnavailable: limiter.Deny})
		s.read = 40 * time.Millisecond
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Millisecond, cancel)
		d := new(limiter.Decision)
		if err := l.Decide(ctx, time.Now(), take("a", "m", "rpm", 1), d); err != nil {
			t.Fatal(err)
		}
		if d.Late || d.Policy != limiter.Deny || !errors.Is(d.Unavailable, context.Canceled) {
			t.Errorf("got %+v, cause %v", verdictOf(d), d.Unavailable)
		}
	})
}
