package catalog

import (
	"context"
	"fmt"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// maxSwept is how many reports that have expired one read deletes. DynamoDB may leave an expired item for days, and
// each read would cost its size.
const maxSwept = 5

// Reports is limiter.Reports in a table. It holds nothing that is to be closed, and is safe for concurrent use.
type Reports struct {
	table table
	now   func() time.Time
}

// NewReports returns the reports in a table, by the wall clock. It makes no call.
func NewReports(items awsdb.Items, name string, now func() time.Time) *Reports {
	return &Reports{table: table{items: items, name: name, loop: awsdb.Goroutines{}}, now: now}
}

// WriteReport implements limiter.Reports by one write without a condition.
func (r *Reports) WriteReport(ctx context.Context, replica string, body []byte) error {
	if err := limiter.CheckReport(replica, body); err != nil {
		return err
	}
	if _, err := r.table.items.Write(ctx, schema.PutReport(replica, body, r.now())); err != nil {
		return fmt.Errorf("writing the report of a replica to table %s: %w", r.table.name, awsdb.Translate(err))
	}
	return nil
}

// ReadReports implements limiter.Reports by one query. An item that is no report is left out.
func (r *Reports) ReadReports(ctx context.Context) ([]limiter.Report, error) {
	var all []limiter.Report
	var expired []*schema.ItemWrite
	now := r.now().Truncate(time.Millisecond)
	for item, err := range r.table.scan(ctx, schema.QueryReports(r.table.name)) {
		if err != nil {
			return nil, err
		}
		report, written, err := schema.ParseReport(r.table.name, item)
		report.Age = max(now.Sub(written), 0)
		switch {
		case err != nil:
		case report.Age < limiter.ReportAge:
			all = append(all, report)
		case len(expired) < maxSwept:
			expired = append(expired, schema.DeleteReport(report.Replica, written))
		}
		if len(all) == limiter.MaxReports {
			break
		}
	}
	r.table.sweep(ctx, expired)
	return all, nil
}

// sweep deletes reports that have expired. After an error the next read tries again. A role that may not delete costs
// the reads of these items.
func (t *table) sweep(ctx context.Context, expired []*schema.ItemWrite) {
	for _, w := range expired {
		if _, err := t.items.Write(ctx, w); err != nil {
			return
		}
	}
}
