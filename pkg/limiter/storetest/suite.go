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

func closeStore(t *testing.T, s limiter.Store) {
	t.Helper()
	if err := s.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Errorf("closing the store after the case: %v", err)
	}
}
