package limiter_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/limiter/storetest"
)

// remote is a limiter over a store that is not local, with its calls counted.
func remote(t *testing.T, static limiter.Static) (*limiter.Limiter, *storetest.Counting) {
	t.Helper()
	calls := storetest.NewCounting(storetest.NewReference())
	l := newLimiter(t, limiter.Config{Store: calls, Timeout: time.Minute}, static) // of a busy machine
	calls.Reset()
	return l, calls
}

func wantCalls(t *testing.T, calls *storetest.Counting, takes, reads int64) {
	t.Helper()
	if got := calls.Count(storetest.Take); got != takes {
		t.Errorf("%d takes, want %d", got, takes)
	}
	if got := calls.Count(storetest.Read); got != reads {
		t.Errorf("%d reads, want %d", got, reads)
	}
	calls.Reset()
}

func TestRecordsAreCached(t *testing.T) {
	l, calls := remote(t, limiter.Static{System: set(t, limiter.PerMinute("rpm", 100))})
	req := take("a", "m", "rpm", 1)
	decide(t, l, t0, req)
	wantCalls(t, calls, 1, 1)
	decide(t, l, t0.Add(59*time.Second), req)
	wantCalls(t, calls, 1, 0) // absence is cached too
	if got := l.CacheStats(); got.Hits != 5 || got.Misses != 5 || got.Size != 5 || got.TTL != time.Minute {
		t.Errorf("stats: got %+v", got)
	}
	decide(t, l, t0.Add(60*time.Second), req)
	wantCalls(t, calls, 1, 1) // too old
	l.InvalidateCache()
	decide(t, l, t0.Add(60*time.Second), req)
	wantCalls(t, calls, 1, 1)

	t.Run("only missing records are read", func(t *testing.T) {
		decide(t, l, t0.Add(61*time.Second), take("b", "m", "rpm", 1))
		wantCalls(t, calls, 1, 1)
		if got := l.CacheStats().Size; got != 8 { // resource and system are cached
			t.Errorf("%d records cached, want 8", got)
		}
	})
}

func TestFirstTouchOfAChildReadsTwice(t *testing.T) {
	l, calls := remote(t, limiter.Static{System: set(t, limiter.PerMinute("rpm", 100))})
	ctx := t.Context()
	for _, e := range []limiter.Entity{{ID: "org"}, {ID: "key", Parent: "org", Cascade: true}} {
		if _, err := calls.PutEntity(ctx, t0, limiter.DefaultNamespace, e); err != nil {
			t.Fatal(err)
		}
	}
	calls.Reset()
	if d := decide(t, l, t0, take("key", "m", "rpm", 1)); len(d.Statuses) != 2 {
		t.Errorf("got %v", brief(d))
	}
	wantCalls(t, calls, 1, 2)
	decide(t, l, t0, take("key", "m", "rpm", 1))
	wantCalls(t, calls, 1, 0)
}

func TestChangesReachTheCache(t *testing.T) {
	l, calls := remote(t, limiter.Static{System: set(t, limiter.PerMinute("rpm", 100))})
	capacity := func() int64 {
		return decide(t, l, t0, take("a", "m", "rpm", 0)).Statuses[0].Limit.Capacity
	}
	if got := capacity(); got != 100 {
		t.Fatalf("capacity %d, want 100", got)
	}
	for _, step := range []struct {
		ref  limiter.Ref
		n    int64
		want int64
	}{
		{limiter.SystemLimitsRef(), 50, 50},
		{limiter.EntityLimitsRef("a", "m"), 5, 5},
		{limiter.EntityLimitsRef("a", "m"), 70, 70},
		{limiter.EntityLimitsRef("a", "m"), 0, 50}, // removed
		{limiter.SystemLimitsRef(), 0, 100},
	} {
		var r limiter.Record
		if step.n > 0 {
			r.Limits = set(t, limiter.PerMinute("rpm", step.n))
		}
		if err := calls.PutLimits(t.Context(), limiter.DefaultNamespace, step.ref, r); err != nil {
			t.Fatal(err)
		}
		if got := capacity(); got != step.want {
			t.Errorf("%v set to %d: capacity %d, want %d", step.ref, step.n, got, step.want)
		}
	}
}

func TestDenialsAreRemembered(t *testing.T) {
	l, calls := remote(t, limiter.Static{System: set(t, limiter.PerMinute("rpm", 60))})
	decide(t, l, t0, take("a", "m", "rpm", 60))
	one := take("a", "m", "rpm", 1)
	decide(t, l, t0, one)
	calls.Reset()
	for i := range 400 {
		now := t0.Add(time.Duration(i) * time.Millisecond)
		d := decide(t, l, now, one)
		if want := t0.Add(time.Second).Sub(now); d.Admitted || d.RetryAfter != want || d.Statuses[0].Available != int64(i) {
			t.Fatalf("after %d ms: %v, %d millitokens; want retry %v", i, brief(d), d.Statuses[0].Available, want)
		}
	}
	wantCalls(t, calls, 0, 0)
	if d := decide(t, l, t0.Add(time.Second), one); !d.Admitted {
		t.Errorf("when the time was up: %v", brief(d))
	}
	wantCalls(t, calls, 1, 0)

	t.Run("a smaller request is not denied for a bigger one", func(t *testing.T) {
		now := t0.Add(10 * time.Second)
		decide(t, l, now, take("a", "m", "rpm", 50))
		if d := decide(t, l, now, take("a", "m", "rpm", 2)); !d.Admitted {
			t.Errorf("got %v", brief(d))
		}
	})
	t.Run("a request for the whole state asks the store", func(t *testing.T) {
		two := take("c", "m", "rpm", 1)
		two.Takes = append(two.Takes, take("b", "m", "rpm", 1).Takes...)
		decide(t, l, t0, take("c", "m", "rpm", 60))
		decide(t, l, t0, take("c", "m", "rpm", 1))
		calls.Reset()
		if d := decide(t, l, t0, two); d.Admitted || len(d.Statuses) != 1 {
			t.Errorf("by memory: %v, %d statuses, want 1", brief(d), len(d.Statuses))
		}
		two.Whole = true
		if d := decide(t, l, t0, two); d.Admitted || len(d.Statuses) != 2 {
			t.Errorf("by the store: %v, %d statuses, want 2", brief(d), len(d.Statuses))
		}
	})
	t.Run("another's bucket is not denied", func(t *testing.T) {
		if d := decide(t, l, t0, take("b", "m", "rpm", 1)); !d.Admitted {
			t.Errorf("got %v", brief(d))
		}
	})
}

func TestDenialIsProbedByOne(t *testing.T) {
	l, calls := remote(t, limiter.Static{System: set(t, limiter.PerHour("rph", 1))})
	decide(t, l, t0, take("a", "m", "rph", 1))
	decide(t, l, t0, take("a", "m", "rph", 1))
	calls.Reset()
	for i := range 100 { // a second later all ask at once
		if d := decide(t, l, t0.Add(time.Second), take("a", "m", "rph", 1)); d.Admitted {
			t.Fatalf("call %d: %v", i, brief(d))
		}
	}
	wantCalls(t, calls, 1, 0)
}

func TestOwnRefundEndsARememberedDenial(t *testing.T) {
	l, calls := remote(t, limiter.Static{System: set(t, limiter.PerHour("rph", 1))})
	decide(t, l, t0, take("a", "m", "rph", 1))
	decide(t, l, t0, take("a", "m", "rph", 1))
	refund := take("a", "m", "rph", 1)
	refund.Takes[0].Mode = limiter.Refund
	decide(t, l, t0, refund)
	if d := decide(t, l, t0, take("a", "m", "rph", 1)); !d.Admitted {
		t.Errorf("got %v", brief(d))
	}
	wantCalls(t, calls, 4, 1)
}

func TestUnavailable(t *testing.T) {
	system := set(t, limiter.PerMinute("rpm", 100))
	for _, test := range []struct {
		name    string
		static  limiter.Policy
		stored  limiter.Policy
		request limiter.Policy
		want    limiter.Policy
		admit   bool
	}{
		{name: "default", want: limiter.Allow, admit: true},
		{name: "file", static: limiter.Deny, want: limiter.Deny},
		{name: "stored", static: limiter.Deny, stored: limiter.Allow, want: limiter.Allow, admit: true},
		{name: "request", static: limiter.Allow, stored: limiter.Allow, request: limiter.Deny, want: limiter.Deny},
	} {
		for _, fault := range []storetest.Fault{storetest.FailBefore, storetest.FailAfter, storetest.Block} {
			t.Run(test.name+"/"+fault.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					faulty := storetest.NewFaulty(storetest.NewReference(), nil)
					told := &keeping{Store: faulty}
					l := newLimiter(t, limiter.Config{Store: told}, limiter.Static{System: system, OnUnavailable: test.static})
					if test.stored != limiter.Unset {
						if err := faulty.PutLimits(t.Context(), limiter.DefaultNamespace, limiter.SystemLimitsRef(), limiter.Record{OnUnavailable: test.stored}); err != nil {
							t.Fatal(err)
						}
					}
					req := take("a", "m", "rpm", 1)
					req.OnUnavailable = test.request
					decide(t, l, t0, req) // learns the stored policy
					faulty.Use(storetest.Always(fault))
					start := time.Now()
					d := decide(t, l, t0, req)
					if d.Policy != test.want || d.Admitted != test.admit || d.Unavailable == nil {
						t.Errorf("got %v, policy %v, cause %v", brief(d), d.Policy, d.Unavailable)
					}
					if told.keep != test.admit {
						t.Errorf("KeepTaken is %t, want %t", told.keep, test.admit)
					}
					if took := time.Since(start); took > limiter.DefaultTimeout {
						t.Errorf("took %v, the budget is %v", took, limiter.DefaultTimeout)
					}
					if faulty.Count(fault) == 0 {
						t.Error("the fault did not happen")
					}
				})
			})
		}
	}
}

// keeping is a store that records KeepTaken.
type keeping struct {
	limiter.Store

	keep bool
}

func (s *keeping) Take(ctx context.Context, now time.Time, ops []limiter.Op) (bool, error) {
	s.keep = ops[0].KeepTaken
	return s.Store.Take(ctx, now, ops)
}

func TestLocalServesAShare(t *testing.T) {
	faulty := storetest.NewFaulty(storetest.NewReference(), nil)
	l := newLimiter(t, limiter.Config{Store: faulty, Fallback: newStore(t)}, limiter.Static{
		System:        set(t, limiter.PerMinute("rpm", 100), limiter.Concurrent("slots", 2, time.Minute)),
		Entities:      map[string]limiter.StaticEntity{"key": {Parent: "org", Cascade: true}},
		OnUnavailable: limiter.Local, LocalShare: 250,
	})
	faulty.Use(storetest.Always(storetest.FailBefore))
	admitted := 0
	for range 100 {
		d := decide(t, l, t0, take("key", "m", "rpm", 1))
		if d.Policy != limiter.Local || !errors.Is(d.Unavailable, limiter.ErrUnavailable) {
			t.Fatalf("policy %v, cause %v", d.Policy, d.Unavailable)
		}
		if d.Admitted {
			admitted++
		} else if d.Reason != limiter.ReasonExhausted || len(d.Statuses) != 2 || d.RetryAfter != 2400*time.Millisecond {
			t.Fatalf("got %v", brief(d))
		}
	}
	if admitted != 25 {
		t.Errorf("%d admitted, want a quarter of 100", admitted)
	}
	req := take("other", "m", "rpm", 51)
	flying := take("a", "m", "slots", 1)
	for i := range 9 {
		if d := decide(t, l, t0, flying); !d.Admitted || d.Policy != limiter.Local {
			t.Errorf("request %d in flight of 2 is admitted %t by %v; the fallback learns of no end", i+1, d.Admitted, d.Policy)
		}
	}
	req.LocalShare = 500
	if d := decide(t, l, t0, req); d.Reason != limiter.ReasonExceedsCapacity {
		t.Errorf("the request's share: got %v", brief(d))
	}
}

// During an outage the store can neither learn of the change nor report its generation.
func TestChangedLimitsReachTheFallbacksBuckets(t *testing.T) {
	faulty := storetest.NewFaulty(storetest.NewReference(), storetest.Always(storetest.FailBefore))
	l, err := limiter.New(limiter.Config{Store: faulty, Fallback: newStore(t)})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int64{100, 10, 50, 7, 80, 3} { // with hashes in any order
		err := l.SetStatic(t.Context(), limiter.Static{System: set(t, limiter.PerHour("rph", n)), OnUnavailable: limiter.Local})
		if !errors.Is(err, limiter.ErrUnavailable) {
			t.Fatalf("SetStatic: got %v, want ErrUnavailable", err)
		}
		d := decide(t, l, t0, take("a", "m", "rph", 1))
		if got := d.Statuses[0].Limit.Capacity; got != n {
			t.Errorf("capacity %d, want %d", got, n)
		}
	}
}

func TestLocalWithoutAFallbackDenies(t *testing.T) {
	faulty := storetest.NewFaulty(storetest.NewReference(), storetest.Always(storetest.FailBefore, storetest.Take, storetest.Read))
	l := newLimiter(t, limiter.Config{Store: faulty}, limiter.Static{System: set(t, limiter.PerMinute("rpm", 100)), OnUnavailable: limiter.Local})
	wantBrief(t, decide(t, l, t0, take("a", "m", "rpm", 1)), "admitted=false store_unavailable retry=0s")
}

func TestCancelledCallerIsAnsweredByPolicy(t *testing.T) {
	for _, store := range []limiter.Store{storetest.NewReference(), newStore(t)} {
		l := newLimiter(t, limiter.Config{Store: store}, limiter.Static{System: set(t, limiter.PerMinute("rpm", 1)), OnUnavailable: limiter.Deny})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		d := new(limiter.Decision)
		if err := l.Decide(ctx, t0, take("a", "m", "rpm", 1), d); err != nil || d.Admitted || !errors.Is(d.Unavailable, context.Canceled) {
			t.Errorf("got %v, cause %v, error %v", brief(d), d.Unavailable, err)
		}
		if d := decide(t, l, t0, take("a", "m", "rpm", 1)); !d.Admitted {
			t.Errorf("the cancelled call took something: %v", brief(d))
		}
	}
}

// Requests that were matched by one configuration are decided by it, while another one is put in
// force. Afterwards the new one applies to every bucket.
func TestSnapshotsDoNotMix(t *testing.T) {
	l := newLimiter(t, limiter.Config{}, limiter.Static{})
	snapshot := func(n int64) *limiter.Snapshot {
		s, err := limiter.NewSnapshot(limiter.Static{System: set(t, limiter.PerMinute("rpm", n))})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Use(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	by := func(s *limiter.Snapshot, entity string) *limiter.Decision {
		req := take(entity, "m", "rpm", 1)
		req.Snapshot = s
		return decide(t, l, t0, req)
	}
	old := snapshot(100)
	by(old, "live")
	next := snapshot(5)
	wantBrief(t, by(next, "live"), "admitted=true none retry=0s", "live/m rpm 4 left exceeded=false")
	// A call that began before the change: the bucket has newer limits.
	wantBrief(t, by(old, "live"), "admitted=true none retry=0s", "live/m rpm 3 left exceeded=false")
	// The next call applies the new limits to a bucket that this one creates.
	by(old, "fresh")
	wantBrief(t, by(next, "fresh"), "admitted=true none retry=0s", "fresh/m rpm 4 left exceeded=false")

	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				by(old, "race")
				by(next, "race")
			}
		})
	}
	wg.Wait()
	if d := by(next, "race"); d.Statuses[0].Limit.Capacity != 5 {
		t.Errorf("got %v", d.Statuses[0].Limit)
	}
}
