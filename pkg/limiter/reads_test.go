package limiter_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/limiter/storetest"
)

// A read continues beyond the deadline of its call. Until its records are there the configuration
// file decides.
func TestReadsGoOnPastTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlow(t)
		putLimits(t, s, limiter.EntityLimitsRef("a", "m"), 70)
		counting := storetest.NewCounting(s)
		l := newLimiter(t, limiter.Config{Store: counting}, limiter.Static{System: set(t, limiter.PerMinute("rpm", 10)), OnUnavailable: limiter.Deny})
		s.read = 40 * time.Millisecond
		var calls sync.WaitGroup
		for range 50 {
			calls.Go(func() { asks(t, l, take("a", "m", "rpm", 0), verdict{Admitted: true, Late: true, Capacity: 10}) })
		}
		calls.Wait()
		if got := s.last(t).Generation; got != 0 {
			t.Errorf("unread limits are of generation %d, want 0: they must not replace others", got)
		}
		asks(t, l, take("a", "m", "rpm", 0), verdict{Admitted: true, Late: true, Capacity: 10})
		time.Sleep(40 * time.Millisecond)
		asks(t, l, take("a", "m", "rpm", 0), verdict{Admitted: true, Capacity: 70})
		if got := counting.Count(storetest.Read); got != 1 {
			t.Errorf("%d reads, want 1", got)
		}
	})
}

// Old records apply while the store does not answer in time. They do not replace newer limits of a
// bucket.
func TestOldRecordsStandIn(t *testing.T) {
	for name, age := range map[string]func(*testing.T, *slow){
		"expired": func(*testing.T, *slow) { time.Sleep(limiter.DefaultCacheTTL) },
		"changed": func(t *testing.T, s *slow) { putLimits(t, s, limiter.EntityLimitsRef("a", "m"), 30) },
		"all changed": func(t *testing.T, s *slow) {
			if err := s.RaiseGeneration(t.Context()); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSlow(t)
				putLimits(t, s, limiter.EntityLimitsRef("a", "m"), 70)
				l := newLimiter(t, limiter.Config{Store: s}, limiter.Static{System: set(t, limiter.PerMinute("rpm", 10)), OnUnavailable: limiter.Deny})
				asks(t, l, take("a", "m", "rpm", 0), verdict{Admitted: true, Capacity: 70})
				read := s.last(t).Generation
				age(t, s)
				s.read = 40 * time.Millisecond
				asks(t, l, take("a", "m", "rpm", 0), verdict{Admitted: true, Late: true, Capacity: 70})
				if got := s.last(t).Generation; got != read {
					t.Errorf("limits that were read at generation %d are said to be of %d", read, got)
				}
			})
		})
	}
}

// A read that began before a change is for no later call.
func TestReadsFromBeforeAreNotForLaterCalls(t *testing.T) {
	for name, change := range map[string]func(*testing.T, *slow, *limiter.Limiter){
		"a change": func(t *testing.T, s *slow, _ *limiter.Limiter) {
			putLimits(t, s, limiter.EntityLimitsRef("a", "m"), 30)
		},
		"invalidation": func(_ *testing.T, _ *slow, l *limiter.Limiter) { l.InvalidateCache() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSlow(t)
				counting := storetest.NewCounting(s)
				l := newLimiter(t, limiter.Config{Store: counting}, limiter.Static{System: set(t, limiter.PerMinute("rpm", 10))})
				s.read = 40 * time.Millisecond
				asks(t, l, take("a", "m", "rpm", 0), verdict{Admitted: true, Late: true, Capacity: 10})
				change(t, s, l)
				asks(t, l, take("a", "m", "rpm", 0), verdict{Admitted: true, Late: true, Capacity: 10})
				if got := counting.Count(storetest.Read); got != 2 {
					t.Errorf("%d reads, want another after the change", got)
				}
			})
		})
	}
}

// A read that hangs is ended after a second.
func TestAReadThatHangsIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faulty := storetest.NewFaulty(newSlow(t), nil)
		l := newLimiter(t, limiter.Config{Store: faulty}, limiter.Static{System: set(t, limiter.PerMinute("rpm", 10)), OnUnavailable: limiter.Deny})
		faulty.Use(storetest.Always(storetest.Block, storetest.Read))
		for range 3 {
			asks(t, l, take("a", "m", "rpm", 0), verdict{Admitted: true, Late: true, Capacity: 10})
		}
		if got := faulty.Count(storetest.Block); got != 1 {
			t.Errorf("%d reads, want 1", got)
		}
		faulty.Use(nil)
		time.Sleep(time.Second)
		asks(t, l, take("a", "m", "rpm", 0), verdict{Admitted: true, Capacity: 10})
	})
}

// A charge that may wait for long outlasts a read that hangs, and blocks no other call's reads.
func TestBookingsOutlastAReadThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faulty := storetest.NewFaulty(newSlow(t), storetest.Script(storetest.Read, storetest.Block, storetest.Block))
		l := newLimiter(t, limiter.Config{Store: faulty}, limiter.Static{System: set(t, limiter.PerMinute("rpm", 10))})
		for patience, want := range map[time.Duration]time.Duration{time.Minute: 2 * time.Second, 1500 * time.Millisecond: 1500 * time.Millisecond} {
			faulty.Use(storetest.Script(storetest.Read, storetest.Block, storetest.Block))
			l.InvalidateCache()
			charge, d, began := take("a", "m", "rpm", 1), new(limiter.Decision), time.Now()
			charge.Takes[0].Mode = limiter.Charge
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if err := l.Book(ctx, began, charge, d); err != nil {
				t.Errorf("patience of %v: %v", patience, err)
			}
			if took := time.Since(began); took != want || d.Late != (want == patience) {
				t.Errorf("a wait of at most %v: charged after %v, late is %t; want %v", patience, took, d.Late, want)
			}
		}
	})
}

// A closed limiter reads nothing.
func TestCloseEndsReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faulty := storetest.NewFaulty(storetest.NewReference(), storetest.Always(storetest.Block, storetest.Read))
		l := newLimiter(t, limiter.Config{Store: faulty}, limiter.Static{System: set(t, limiter.PerMinute("rpm", 10))})
		d := new(limiter.Decision)
		if err := l.Decide(t.Context(), t0, take("a", "m", "rpm", 1), d); err != nil {
			t.Fatal(err)
		}
		before := time.Now()
		l.Close()
		l.Close()
		if waited := time.Since(before); waited > 0 {
			t.Errorf("Close waited %v for a read that hangs", waited)
		}
		if err := l.Decide(t.Context(), t0, take("b", "m", "rpm", 1), d); !errors.Is(err, limiter.ErrClosed) {
			t.Errorf("a decision that has to read: got %v, want ErrClosed", err)
		}
		if got := faulty.Count(storetest.Block); got != 1 {
			t.Errorf("%d reads, want 1", got)
		}
	})
}

// Any number of names makes a bounded number of reads.
func TestReadsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most, calls = 1024, 3000
		faulty := storetest.NewFaulty(newSlow(t), nil)
		l := newLimiter(t, limiter.Config{Store: faulty}, limiter.Static{System: set(t, limiter.PerMinute("rpm", 10))})
		faulty.Use(storetest.Always(storetest.Block, storetest.Read))
		var wg sync.WaitGroup
		for i := range calls {
			wg.Go(func() {
				asks(t, l, take(strconv.Itoa(i), "m", "rpm", 1), verdict{Admitted: true, Late: true, Capacity: 10})
			})
		}
		wg.Wait()
		if got := faulty.Count(storetest.Block); got != most {
			t.Errorf("%d reads for %d calls, want %d", got, calls, most)
		}
	})
}

// putLimits stores a limit "rpm" of n a minute.
func putLimits(t *testing.T, s limiter.Store, ref limiter.Ref, n int64) {
	t.Helper()
	if err := s.PutLimits(t.Context(), limiter.DefaultNamespace, ref, limiter.Record{Limits: set(t, limiter.PerMinute("rpm", n))}); err != nil {
		t.Fatal(err)
	}
}
