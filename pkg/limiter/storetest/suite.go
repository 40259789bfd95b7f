package storetest

import (
	"context"
	"testing"

	"pgregory.net/rapid"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// T is the part of *testing.T that a check needs.
type T interface {
	rapid.TB
	Context() context.Context
}

// check is one case of the suite. It is run with a store of its own.
type check struct {
	name  string
	needs func(limiter.BackendCapabilities) bool // nil = nothing
	run   func(t T, s limiter.Store)
}

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

func closeStore(t *testing.T, s limiter.Store) {
	t.Helper()
	if err := s.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Errorf("closing the store after the case: %v", err)
	}
}
