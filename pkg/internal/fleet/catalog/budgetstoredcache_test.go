package catalog

import (
	"strconv"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// The places that are remembered are bounded, however many there are.
func TestStoredCacheIsBounded(t *testing.T) {
	var c storedBudgetCache
	now := time.Unix(1_800_000_000, 0)
	for i := range 3 * maxStored {
		c.put(now, map[schema.Key]limiter.StoredBudgetLimits{{PK: strconv.Itoa(i)}: {Limits: &limiter.Limits{}}})
		if len(c.at) > maxStored {
			t.Fatalf("%d places after %d", len(c.at), i+1)
		}
		if i == maxStored {
			now = now.Add(storedFor) // without room all entries go
		}
	}
	var stored limiter.StoredBudgets
	if missing := c.get(now, []schema.Key{{PK: strconv.Itoa(3*maxStored - 1)}, {PK: "other"}}, &stored); len(missing) != 1 || stored[0].Limits == nil {
		t.Errorf("%v are missing, stored %v", missing, stored)
	}
}
