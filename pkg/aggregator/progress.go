package aggregator

import (
	"context"
	"fmt"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

const (
	// ReportEvery is the time from one report of an aggregator to the next, at least. A function that no record
	// calls reports nothing.
	ReportEvery = 15 * time.Second
	// ProgressAge is how long the last report of an aggregator is kept.
	ProgressAge = 3 * 24 * time.Hour
	// MaxProblem is the longest problem of a report, in bytes.
	MaxProblem = 300
)

// Progress is the report of an aggregator about itself. It is in the table, for the replicas of the service.
type Progress struct {
	ID       string // of the process, or of the instance of a function; see [Progress.Check]
	Function bool   // calls with records drive it, and else it reports nothing
	Stopped  bool   // the process ended in order

	// Age is the time since the report was written, by the clocks of both sides, whole ms; 0 or above. A writer does
	// not set it.
	Age time.Duration
	// Behind is how much older the oldest record is that may not be counted, when the report is written, whole ms;
	// 0 or above. It is of the shards that the aggregator reads. It is not known where Shards is 0.
	Behind  time.Duration
	Shards  int64  // that it reads
	Problem string // why it does not go on, for people; "" = it does
}

// Check refuses, with limiter.ErrInvalid, a report that none may write. An ID is 1 to limiter.MaxReplicaLength lower-case letters, digits
// and hyphens.
func (p *Progress) Check() error {
	if err := limiter.CheckReport(p.ID, []byte{0}); err != nil {
		return err
	}
	if len(p.Problem) > MaxProblem || p.Behind < 0 || p.Shards < 0 {
		return fmt.Errorf("%w: the report of aggregator %s has a problem of %d bytes, %d shards, %v behind", limiter.ErrInvalid, p.ID, len(p.Problem), p.Shards, p.Behind)
	}
	return nil
}

// Reports keeps the last report of each aggregator.
type Reports interface {
	// Report stores the progress of an aggregator, in the place of its last one. After an error the next report
	// takes its place.
	Report(ctx context.Context, p *Progress) error
}
