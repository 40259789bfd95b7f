package storetest_test

import (
	"testing"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/limiter/storetest"
)

func TestReference(t *testing.T) {
	storetest.Run(t, func(*testing.T) limiter.Store { return storetest.NewReference() })
}

// TestWrappers: a store that fails never, and one that is counted, are that store.
func TestWrappers(t *testing.T) {
	storetest.Run(t, func(*testing.T) limiter.Store {
		return storetest.NewCounting(storetest.NewFaulty(storetest.NewReference(), nil))
	})
}
