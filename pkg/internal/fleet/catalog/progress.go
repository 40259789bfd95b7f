package catalog

import (
	"context"
	"fmt"
	"time"

	"github.com/ratelimit/ratelimit/pkg/aggregator"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

var _ aggregator.Reports = (*Progress)(nil)

// Progress has the reports of aggregators in a table. It holds nothing that is to be closed, and is safe for concurrent
// use.
type Progress struct {
	table table
	now   func() time.Time
}

// NewProgress returns the reports in a table, by the wall clock. It makes no call.
func NewProgress(items awsdb.Items, name string, now func() time.Time) *Progress {
	return &Progress{table: table{items: items, name: name, loop: awsdb.Goroutines{}}, now: now}
}

// Report implements aggregator.Reports by one write without a condition, of one write unit.
func (r *Progress) Report(ctx context.Context, p *aggregator.Progress) error {
	if err := p.Check(); err != nil {
		return err
	}
	if _, err := r.table.items.Write(ctx, schema.PutProgress(p, r.now())); err != nil {
		return fmt.Errorf("writing the report of an aggregator to table %s: %w", r.table.name, awsdb.Translate(err))
	}
	return nil
}

// Aggregators returns the last reports of all aggregators of the last aggregator.ProgressAge, at most limiter.MaxReports, in any order,
// by one query. An item that is no report is left out. A report that is older than limiter.ReportAge is deleted, as an
// aggregator that goes on has another: the newest report of all stays.
func (r *Progress) Aggregators(ctx context.Context) ([]aggregator.Progress, error) {
	var all []aggregator.Progress
	var times []time.Time
	now, newest := r.now().Truncate(time.Millisecond), 0
	for item, err := range r.table.scan(ctx, schema.QueryProgress(r.table.name)) {
		if err != nil {
			return nil, err
		}
		p, written, err := schema.ParseProgress(r.table.name, item)
		if p.Age = max(now.Sub(written), 0); err != nil || p.Age >= aggregator.ProgressAge {
			continue
		}
		if all, times = append(all, p), append(times, written); p.Age < all[newest].Age {
			newest = len(all) - 1
		}
		if len(all) == limiter.MaxReports {
			break
		}
	}
	var expired []*schema.ItemWrite
	for i := range all {
		if i != newest && all[i].Age >= limiter.ReportAge && len(expired) < maxSwept {
			expired = append(expired, schema.DeleteProgress(all[i].ID, times[i]))
		}
	}
	r.table.sweep(ctx, expired)
	return all, nil
}
