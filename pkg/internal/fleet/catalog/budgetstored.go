package catalog

import (
	"context"
	"fmt"
	"slices"

	"github.com/ratelimit/ratelimit/pkg/aggregator"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// StoredBudgets implements aggregator.Notes. Limits that cannot be read count as none: to refuse the change
// would hold up the records behind it.
func (n *BudgetNotes) StoredBudgets(ctx context.Context, of aggregator.Bucket) (limiter.StoredBudgets, error) {
	var stored limiter.StoredBudgets
	places := schema.LimitsKeys(of.Namespace, of.Entity, of.Resource)
	now := n.now().Round(0) // by the wall clock: the other one stops while a function is frozen
	missing := n.stored.get(now, places[:], &stored)
	if len(missing) == 0 {
		return stored, nil
	}
	read, err := n.readStored(ctx, missing)
	if err != nil {
		return stored, err
	}
	n.stored.put(now, read)
	for i, k := range places {
		if limits, ok := read[k]; ok {
			stored[i] = limits
		}
	}
	return stored, nil
}

// remember reads the stored limits of some buckets that are not remembered, by one call: of at most 25
// buckets.
func (n *BudgetNotes) remember(ctx context.Context, buckets []aggregator.Bucket) error {
	var stored limiter.StoredBudgets
	var missing []schema.Key
	now := n.now().Round(0)
	for _, of := range buckets {
		places := schema.LimitsKeys(of.Namespace, of.Entity, of.Resource)
		for _, k := range n.stored.get(now, places[:], &stored) {
			if !slices.Contains(missing, k) {
				missing = append(missing, k)
			}
		}
	}
	if len(missing) == 0 {
		return nil
	}
	read, err := n.readStored(ctx, missing)
	if err != nil {
		return err
	}
	n.stored.put(now, read)
	return nil
}

// readStored reads the limits that are stored under some keys.
func (n *BudgetNotes) readStored(ctx context.Context, keys []schema.Key) (map[schema.Key]limiter.StoredBudgetLimits, error) {
	items, err := readAll(ctx, n.items, n.table, keys, awsdb.TranslatePatient)
	if err != nil {
		return nil, fmt.Errorf("stored limits of %s: %w", keys[0], err)
	}
	read := make(map[schema.Key]limiter.StoredBudgetLimits, len(keys))
	for _, k := range keys {
		read[k] = limiter.StoredBudgetLimits{}
	}
	for _, item := range items {
		if k, r, err := schema.ParseLimits(n.table, item); err == nil && r.Limits.Len() > 0 {
			read[k] = limiter.StoredBudgetLimits{Limits: r.Limits, Budgets: r.Budgets}
		}
	}
	return read, nil
}
