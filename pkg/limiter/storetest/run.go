package storetest

import (
	"testing"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// checks returns every case, in the order in which they run.
func checks() []check {
	var all []check
	for _, theme := range [][]check{
		spendChecks(), takeChecks(), windowChecks(), linearChecks(), retryChecks(), changeChecks(), useChecks(), nameChecks(), lifecycleChecks(), entityChecks(), recordChecks(), settleChecks(), leaveChecks(), lateChecks(), secretChecks(), lockstepChecks(), limiterChecks(),
	} {
		all = append(all, theme...)
	}
	return all
}

// Run tests the stores that open returns against the contract of limiter.Store. Each case has a
// fresh store, which is closed after it. A case is skipped only if the store's capabilities show
// that its subject is not needed.
func Run(t *testing.T, open func(t *testing.T) limiter.Store) {
	t.Helper()
	for _, c := range checks() {
		t.Run(c.name, func(t *testing.T) {
			s := open(t)
			defer closeStore(t, s)
			if c.needs != nil && !c.needs(s.Capabilities()) {
				t.Skipf("not needed of a store with the capabilities %+v", s.Capabilities())
			}
			c.run(t, s)
		})
	}
}

// controlThemes are the cases of RunControl, in the order in which they run.
func controlThemes() [][]controlCheck {
	return [][]controlCheck{editChecks(), budgetChecks(), directoryChecks(), auditChecks(), disableChecks(), namespaceChecks(), purgeChecks()}
}

// RunControl tests the stores that open returns against the contract of limiter.Control. Each case
// has a fresh store, which is closed after it. A case is skipped only if the store does not have
// the capability of its subject.
func RunControl(t *testing.T, open func(t *testing.T) ControlStore) {
	t.Helper()
	for _, theme := range controlThemes() {
		for _, c := range theme {
			t.Run(c.name, func(t *testing.T) {
				s := open(t)
				defer closeStore(t, s)
				if c.needs != nil && !c.needs(s.Capabilities()) {
					t.Skipf("not in a store with the capabilities %+v", s.Capabilities())
				}
				c.run(t, s)
			})
		}
	}
}
