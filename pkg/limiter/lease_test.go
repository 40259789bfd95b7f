package limiter_test

import (
	"errors"
	"testing"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

func acquire(t *testing.T, l *limiter.Limiter, req *limiter.Request) *limiter.Lease {
	t.Helper()
	lease, d, err := l.Acquire(t.Context(), t0, req)
	if err != nil || lease == nil {
		t.Fatalf("Acquire: %v, error %v", brief(d), err)
	}
	return lease
}

// A charge stops at the debt floor. The part that it did not take must not be refunded.
func TestLeaseGivesBackNoMoreThanWasBooked(t *testing.T) {
	tph := func(n int64) map[string]int64 { return map[string]int64{"tph": n * limiter.Milli} }
	for _, test := range []struct {
		name     string
		maxDebt  int64
		giveBack func(*limiter.Lease) error
		left     string
	}{
		// 100, less 10 taken, less 80 of others; then 50 are charged.
		{"rollback, all charged", 41, func(l *limiter.Lease) error { return l.Rollback(t.Context(), t0) }, "20"},
		{"rollback, cut", limiter.NoDebt, func(l *limiter.Lease) error { return l.Rollback(t.Context(), t0) }, "10"},
		{"release of the cut part", limiter.NoDebt, func(l *limiter.Lease) error { return l.Release(t.Context(), t0, tph(50)) }, "0"},
		{"release of more", limiter.NoDebt, func(l *limiter.Lease) error { return l.Release(t.Context(), t0, tph(55)) }, "5"},
		{"release in parts", limiter.NoDebt, func(l *limiter.Lease) error {
			return errors.Join(l.Release(t.Context(), t0, tph(45)), l.Release(t.Context(), t0, tph(15)))
		}, "10"},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newLimiter(t, limiter.Config{}, limiter.Static{System: set(t, limiter.PerHour("tph", 100).WithMaxDebt(test.maxDebt))})
			lease := acquire(t, l, take("a", "m", "tph", 10))
			decide(t, l, t0, take("a", "m", "tph", 80))
			if err := lease.Adjust(t.Context(), t0, tph(50)); err != nil {
				t.Fatal(err)
			}
			if err := test.giveBack(lease); err != nil {
				t.Fatal(err)
			}
			refund := take("a", "m", "tph", 0) // a refund of 0: shows the balance
			refund.Takes[0].Mode = limiter.Refund
			wantBrief(t, decide(t, l, t0, refund), "admitted=true none retry=0s", "a/m tph "+test.left+" left exceeded=false")
		})
	}
}

func TestLeaseOfAnUnlimitedLimitIsAdjusted(t *testing.T) {
	l := newLimiter(t, limiter.Config{}, limiter.Static{System: set(t, limiter.PerHour("rph", 100), limiter.Unlimited("tph"))})
	lease := acquire(t, l, take("a", "m", "rph", 1, "tph", 10))
	if err := lease.Adjust(t.Context(), t0, map[string]int64{"tph": 50 * limiter.Milli}); err != nil {
		t.Error(err)
	}
	if err := lease.Adjust(t.Context(), t0, map[string]int64{"other": 1}); !errors.Is(err, limiter.ErrInvalid) {
		t.Errorf("a limit that was not asked for: got %v, want ErrInvalid", err)
	}
}

func TestLeaseHoldsWhatWasTakenBesideACharge(t *testing.T) {
	l := newLimiter(t, limiter.Config{}, limiter.Static{System: set(t, limiter.PerHour("tph", 100))})
	req := take("a", "m", "tph", 10)
	req.Takes = append(req.Takes, take("a", "m", "tph", 5).Takes[0])
	req.Takes[1].Mode = limiter.Charge
	if err := acquire(t, l, req).Rollback(t.Context(), t0); err != nil {
		t.Fatal(err)
	}
	wantBrief(t, decide(t, l, t0, take("a", "m", "tph", 0)), "admitted=true none retry=0s", "a/m tph 95 left exceeded=false")
}

func TestRollbackEndsARememberedDenial(t *testing.T) {
	l, _ := remote(t, limiter.Static{System: set(t, limiter.PerHour("rph", 1))})
	lease := acquire(t, l, take("a", "m", "rph", 1))
	decide(t, l, t0, take("a", "m", "rph", 1))
	if err := lease.Rollback(t.Context(), t0); err != nil {
		t.Fatal(err)
	}
	if d := decide(t, l, t0, take("a", "m", "rph", 1)); !d.Admitted {
		t.Errorf("got %v", brief(d))
	}
}
