package changestream

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/aggregator"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// StoredBudgets implements aggregator.Standings. Limits that cannot be read count as none: to refuse the change
// would hold up the records behind it.
func (s *Stream) StoredBudgets(ctx context.Context, of aggregator.Bucket) (limiter.StoredBudgets, error) {
	var stored limiter.StoredBudgets
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
func (s *Stream) readStored(ctx context.Context, keys []schema.Key) (map[schema.Key]limiter.StoredBudgetLimits, error) {
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
	read := make(map[schema.Key]limiter.StoredBudgetLimits, len(keys))
	for _, k := range keys {
		read[k] = limiter.StoredBudgetLimits{}
	}
	for _, item := range out.Responses[s.table] {
		if k, r, err := schema.ParseLimits(s.table, item); err == nil && r.Limits.Len() > 0 {
			read[k] = limiter.StoredBudgetLimits{Limits: r.Limits, Budgets: r.Budgets}
		}
	}
	return read, nil
}
