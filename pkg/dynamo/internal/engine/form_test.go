package engine_test

import (
	"sync/atomic"
	"testing"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/engine"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/limiter/storetest"
)

// TestConformanceInFormOne: beside replicas of version 1 a store keeps all its promises, on
// items of form 1.
func TestConformanceInFormOne(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of processor time")
	}
	storetest.Run(t, func(t *testing.T) limiter.Store {
		return newJoined(t, func(cfg *engine.Config) {
			cfg.Leases = true
			cfg.Form = func(string) int { return schema.FormOld }
		})
	})
}

// TestConformanceWhileItemsComeIntoFormTwo: the same while items are brought into form 2, at
// some point of each test.
func TestConformanceWhileItemsComeIntoFormTwo(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of processor time")
	}
	storetest.Run(t, func(t *testing.T) limiter.Store {
		var asked atomic.Int64
		return newJoined(t, func(cfg *engine.Config) {
			cfg.Leases = true
			cfg.Form = func(string) int {
				if asked.Add(1) <= 5 {
					return schema.FormOld
				}
				return schema.FormNow
			}
		})
	})
}
