package catalog

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/aggregator"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// comparedTogether is how many buckets are compared together. Each has three snapshots and at most four places of
// stored limits, and one call reads 100 items at most.
const comparedTogether = 25

// budgetsInForce is the budgets of a configuration, with their windows.
type budgetsInForce struct {
	windows [limiter.UsageMonth + 1]bool
}

func newBudgetsInForce(set *limiter.BudgetSet) (f budgetsInForce) {
	for _, budgets := range set.All() {
		f.add(budgets)
	}
	return f
}

func (f *budgetsInForce) add(budgets *limiter.Budgets) {
	for i := range budgets.Len() {
		f.windows[budgets.At(i).Window] = true
	}
}

// compare compares the snapshots of some hours, and those of the days and months that they are in: as far
// as there are budgets for them.
func (w *BudgetWatch) compare(ctx context.Context, set budgetsInForce, hours []schema.Key) error {
	snapshots := make(map[schema.Key]aggregator.Snapshot)
	of := make([]aggregator.Snapshot, 0, len(hours))
	buckets := make([]aggregator.Bucket, 0, len(hours))
	for _, k := range hours {
		if ns, u, ok := schema.ParseUsageKey(k); ok {
			bucket := aggregator.Bucket{Namespace: ns, Entity: u.Entity, Resource: u.Resource}
			buckets, of = append(buckets, bucket), append(of, aggregator.Snapshot{Bucket: bucket, Start: u.Start})
		}
	}
	if err := w.notes.remember(ctx, buckets); err != nil {
		return err
	}
	for _, s := range of {
		stored, err := w.notes.StoredBudgets(ctx, s.Bucket)
		if err != nil {
			return err
		}
		here := set
		for i := range stored {
			here.add(stored[i].Budgets)
		}
		for _, window := range limiter.UsageWindows() {
			if here.windows[window] {
				u := schema.UsageOf{Entity: s.Bucket.Entity, Resource: s.Bucket.Resource, Window: window, Start: window.Start(s.Start)}
				snapshots[u.Key(s.Bucket.Namespace)] = aggregator.Snapshot{Bucket: s.Bucket, Window: window, Start: u.Start}
			}
		}
	}
	standings, err := w.read(ctx, snapshots)
	if err != nil {
		return err
	}
	for k, now := range standings {
		s := snapshots[k]
		if err := w.comparison.Compare(ctx, &s, maps.Keys(now.Used), now); err != nil {
			return err
		}
	}
	return nil
}

// read reads snapshots as they stand. One that cannot be read has reached nothing.
func (w *BudgetWatch) read(ctx context.Context, snapshots map[schema.Key]aggregator.Snapshot) (map[schema.Key]aggregator.Standing, error) {
	if len(snapshots) == 0 {
		return nil, nil
	}
	items, err := readAll(ctx, w.cfg.Items, w.cfg.Table, slices.Collect(maps.Keys(snapshots)), awsdb.TranslateRead)
	if err != nil {
		return nil, fmt.Errorf("snapshots of usage: %w", err)
	}
	standings := make(map[schema.Key]aggregator.Standing, len(snapshots))
	for _, item := range items {
		k, keyErr := schema.ItemKey(w.cfg.Table, item)
		if s, err := schema.ParseStanding(w.cfg.Table, item); err == nil && keyErr == nil {
			standings[k] = s
		}
	}
	return standings, nil
}

// readAll reads items by one call: all of those that are there.
func readAll(ctx context.Context, from awsdb.Items, table string, keys []schema.Key, translate func(error) error) ([]map[string]types.AttributeValue, error) {
	asked := types.KeysAndAttributes{Keys: make([]map[string]types.AttributeValue, len(keys))}
	for i, k := range keys {
		asked.Keys[i] = k.Attributes()
	}
	ctx, stop := context.WithTimeout(ctx, noteTimeout)
	defer stop()
	out, err := from.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{table: asked}})
	if err != nil {
		return nil, translate(err)
	}
	if left := len(out.UnprocessedKeys[table].Keys); left > 0 {
		return nil, fmt.Errorf("%w: %d of %d were not read", limiter.ErrUnavailable, left, len(keys))
	}
	return out.Responses[table], nil
}
