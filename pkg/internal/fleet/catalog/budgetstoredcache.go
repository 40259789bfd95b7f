package catalog

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

const (
	storedFor = time.Minute // that limits are remembered once they were read
	maxStored = 50_000      // places whose limits are remembered: some 20 MB
)

// storedBudgetCache remembers for a time which limits are stored, also where there are none.
type storedBudgetCache struct {
	mu sync.Mutex
	at map[schema.Key]storedBudgetsThen
}

type storedBudgetsThen struct {
	limits limiter.StoredBudgetLimits
	read   time.Time
}

// get fills in the places that it has, and returns the keys of the others.
func (c *storedBudgetCache) get(now time.Time, places []schema.Key, stored *limiter.StoredBudgets) (missing []schema.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, k := range places {
		then, ok := c.at[k]
		switch {
		case ok && then.fresh(now):
			stored[i] = then.limits
		case !slices.Contains(missing, k): // a resource with the name of the default one has a place twice
			missing = append(missing, k)
		}
	}
	return missing
}

// fresh reports whether the entry still counts. A clock that was set back makes it old.
func (s storedBudgetsThen) fresh(now time.Time) bool {
	age := now.Sub(s.read)
	return age >= 0 && age < storedFor
}

// put stores limits that were read. Where there is no room, old entries go, and if that is
// not enough, all.
func (c *storedBudgetCache) put(now time.Time, read map[schema.Key]limiter.StoredBudgetLimits) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.at)+len(read) > maxStored {
		maps.DeleteFunc(c.at, func(_ schema.Key, then storedBudgetsThen) bool { return !then.fresh(now) })
	}
	if c.at == nil || len(c.at)+len(read) > maxStored {
		c.at = make(map[schema.Key]storedBudgetsThen)
	}
	for k, limits := range read {
		c.at[k] = storedBudgetsThen{limits, now}
	}
}
