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

// slow is a store whose answers take time. If an answer does not come before the deadline, it
// decides late, by its rule. Without a delay it answers at once.
type slow struct {
	limiter.Store

	read, take time.Duration
	admit      bool // the outcome of a late decision

	mu    sync.Mutex
	asked []limiter.Op // of the last Take
}

// newSlow returns a store that answers at once. The test waits for the end of its reads.
func newSlow(t *testing.T) *slow {
	t.Helper()
	t.Cleanup(func() { time.Sleep(time.Second) })
	return &slow{Store: storetest.NewReference(), admit: true}
}

// pass waits for d, or until ctx is done. A wait of 0 makes no timer: timers that are due at once,
// in many goroutines of one bubble, crash the race detector of Go 1.26.
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

// verdict is the part of a decision that shows its maker.
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

// A late decision is one of the store: no policy has a part in it, and it does not deny the next
// one.
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
		asks(t, l, take("a", "m", "rpm", 1), verdict{Admitted: true, Capacity: 10}) // no denial was cached
	})
}

// A reused decision is not late, and its ops are not either.
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

// A policy decides if neither the store's records nor the file have the limits in time.
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

// A decision without a bucket is late too, if its limits were not read.
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

// The store reports an outage. Then the policy decides, not the state last seen.
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

// A policy's decision is not late, although the limits were read late.
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

// A canceled call has no waiting caller, so its decision is not late.
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
