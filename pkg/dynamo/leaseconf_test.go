package dynamo_test

import (
	"testing"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/limiter/storetest"
)

func TestConformanceWithLeases(t *testing.T) {
	rapidChecks(t, randomCases)
	storetest.Run(t, func(t *testing.T) limiter.Store { return newStore(t, newTable(t), withLeases) })
}
