package changestream

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/aggregator"
	"github.com/ratelimit/ratelimit/pkg/budget"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

const (
	storedFor = time.Minute // that limits are remembered once they were read
	maxStored = 50_000      // places whose limits are remembered: some 20 MB
)

// storedCache remembers for a time which limits are stored, also where there are none.
type storedCache struct {
	mu sync.Mutex
	at map[schema.Key]storedThen
}

type storedThen struct {
	limits budget.StoredLimits
	read   time.Time
}

// get fills in the places that it has, and returns the keys of the others.
func (c *storedCache) get(now time.Time, places []schema.Key, stored *budget.Stored) (missing []schema.Key) {
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
func (s storedThen) fresh(now time.Time) bool {
	age := now.Sub(s.read)
	return age >= 0 && age < storedFor
}

// put stores limits that were read. Where there is no room, old entries go, and if that is
// not enough, all.
func (c *storedCache) put(now time.Time, read map[schema.Key]budget.StoredLimits) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.at)+len(read) > maxStored {
		maps.DeleteFunc(c.at, func(_ schema.Key, then storedThen) bool { return !then.fresh(now) })
	}
	if c.at == nil || len(c.at)+len(read) > maxStored {
		c.at = make(map[schema.Key]storedThen)
	}
	for k, limits := range read {
		c.at[k] = storedThen{limits, now}
	}
}

// StoredBudgets implements aggregator.Standings. Limits that cannot be read count as none: to refuse the change
// would hold up the records behind it.
func (s *Stream) StoredBudgets(ctx context.Context, of aggregator.Bucket) (budget.Stored, error) {
	var stored budget.Stored
	places := schema.LimitsKeys(of.Namespace, of.Entity, of.Resource)
	now := s.now().Round(0) // by the wall clock: the other one stops while a function is frozen
	missing := s.stored.get(now, places[:], &stored)
	if len(missing) == 0 {
		return stored, nil
	}
	read, err := s.readStored(ctx, missing)
	if err != nil {
		return stored, err
	}
	s.stored.put(now, read)
	for i, k := range places {
		if limits, ok := read[k]; ok {
			stored[i] = limits
		}
	}
	return stored, nil
}

// readStored reads the limits that are stored under some keys.
func (s *Stream) readStored(ctx context.Context, keys []schema.Key) (map[schema.Key]budget.StoredLimits, error) {
	asked := types.KeysAndAttributes{Keys: make([]map[string]types.AttributeValue, len(keys))}
	for i, k := range keys {
		asked.Keys[i] = k.Attributes()
	}
	ctx, stop := context.WithTimeout(ctx, callTimeout)
	defer stop()
	out, err := s.client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{s.table: asked}})
	if err != nil {
		return nil, fmt.Errorf("stored limits of %s: %w", keys[0], translateCall(err))
	}
	if left := len(out.UnprocessedKeys[s.table].Keys); left > 0 {
		return nil, fmt.Errorf("stored limits of %s: %w: %d of %d were not read", keys[0], limiter.ErrUnavailable, left, len(keys))
	}
	read := make(map[schema.Key]budget.StoredLimits, len(keys))
	for _, k := range keys {
		read[k] = budget.StoredLimits{}
	}
	for _, item := range out.Responses[s.table] {
		if k, r, err := schema.ParseLimits(s.table, item); err == nil && r.Limits.Len() > 0 {
			read[k] = budget.StoredLimits{There: true, Budgets: r.Budgets}
		}
	}
	return read, nil
}
