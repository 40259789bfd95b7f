package engine

import (
	"context"
	"time"

	"github.com/ratelimit/ratelimit/pkg/aggregator"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// reportTime bounds a call for reports.
const reportTime = 2 * time.Second

var _ limiter.Reports = (*Store)(nil)

// WriteReport implements limiter.Reports by one write, of at most 4 write units of DynamoDB. In an outage it is not
// sent, and fails at once.
func (s *Store) WriteReport(ctx context.Context, replica string, body []byte) error {
	ctx, end, err := s.begin(ctx, reportTime)
	if err != nil {
		return err
	}
	defer end()
	return s.reports.WriteReport(ctx, replica, body)
}

// ReadReports implements limiter.Reports by one query, of half a read unit of DynamoDB for each report.
func (s *Store) ReadReports(ctx context.Context) ([]limiter.Report, error) {
	ctx, end, err := s.begin(ctx, reportTime)
	if err != nil {
		return nil, err
	}
	defer end()
	return s.reports.ReadReports(ctx)
}

// Aggregators returns the last reports of the aggregators of the table, at most limiter.MaxReports, in any order, by one query.
// One that is older than aggregator.ProgressAge, or that a newer one has made needless, may be missing. Errors are those
// of ReadReports. On a table whose server counts usage by itself they archive audit events.
func (s *Store) Aggregators(ctx context.Context) ([]aggregator.Progress, error) {
	ctx, end, err := s.begin(ctx, reportTime)
	if err != nil {
		return nil, err
	}
	defer end()
	return s.progress.Aggregators(ctx)
}
