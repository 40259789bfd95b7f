package aggregator

import (
	"context"
	"maps"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Standing is a snapshot as it is after a write.
type Standing struct {
	Entity, Resource string           // in full
	Used             map[string]int64 // millitokens by limit
	Told             map[Mark]string  // the write that has noted a mark; no two writes have the same name
}

// Mark says that a threshold of a budget was reported. A budget that is changed has other
// marks.
type Mark struct {
	Limit   string
	Tokens  int64
	Percent int
}

// Standings stores snapshots, and the thresholds of budgets that were reported of
// them.
type Standings interface {
	Snapshots
	Notes
	// Post is Add, and returns the snapshot as it is then: also where it has the records.
	Post(ctx context.Context, c *Change) (has Sequence, s Standing, err error)
}

// Thresholds are snapshots whose usage is compared with budgets. It is safe for concurrent use.
type Thresholds struct {
	Standings
	*Comparison
}

// NewThresholds returns snapshots that compare usage with budgets, as [NewComparison] does.
func NewThresholds(to Standings, budgets func() *limiter.BudgetSet, tell func(limiter.BudgetEvent)) *Thresholds {
	return &Thresholds{to, NewComparison(to, budgets, tell)}
}

// Add implements Snapshots. On an error the change may have been applied, and the same change is
// to be sent again: then its snapshot is compared again.
func (t *Thresholds) Add(ctx context.Context, c *Change) (has Sequence, err error) {
	has, standing, err := t.Post(ctx, c)
	if err != nil {
		return "", err
	}
	if err := t.Compare(ctx, &c.Snapshot, maps.Keys(c.Used), standing); err != nil {
		return "", err
	}
	return has, nil
}
