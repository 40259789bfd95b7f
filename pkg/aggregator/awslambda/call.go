package awslambda

import (
	"context"
	"encoding/json"
	"time"

	"github.com/ratelimit/ratelimit/pkg/aggregator"
)

// call is one call of a function.
type call struct {
	cfg    *Config
	batch  *aggregator.Batch
	lines  *aggregator.Lines // nil = there is no archive
	newest time.Time
	counts counts
}

// take adds a record to the batch.
func (c *call) take(raw json.RawMessage) {
	from, problem := decode(raw)
	r := c.cfg.Stream.Record(from)
	if problem != nil {
		r.Problem = problem
	}
	c.counts.Records++
	if r.Time.After(c.newest) {
		c.newest = r.Time
	}
	c.batch.Add(&r)
	if c.lines != nil {
		c.lines.Add(&r)
	}
}

// report writes the metrics of the call.
func (c *call) report() {
	now := c.cfg.Now()
	if !c.newest.IsZero() { // else no record has a time
		c.counts.AgeSeconds = max(now.Sub(c.newest), 0).Round(time.Millisecond).Seconds()
	}
	c.counts.write(c.cfg.Metrics, c.cfg.Table, now)
}

// flush writes the batch and the archive, and returns the first record that is not done; "" = all are.
func (c *call) flush(ctx context.Context) aggregator.Sequence {
	done, err := c.batch.Flush(ctx, c.cfg.Stream)
	c.counts.Snapshots, c.counts.RepeatedRecords = done.Written, done.Repeated
	if err != nil {
		c.counts.Failures++
		c.cfg.Logger.WarnContext(ctx, "usage cannot be written: the records are repeated", "from", string(done.Failed), "error", err)
	}
	c.bury(c.batch.Letters())
	unarchived := c.archive(ctx)
	if done.Failed == "" || unarchived != "" && unarchived.Compare(done.Failed) < 0 {
		return unarchived
	}
	return done.Failed
}

// archive writes the archive, and returns the first event that is not there; "" = all are.
func (c *call) archive(ctx context.Context) aggregator.Sequence {
	if c.lines == nil {
		return ""
	}
	done, err := c.lines.Flush(ctx, c.cfg.Archive)
	c.counts.ArchivedEvents = done.Events
	c.bury(c.lines.Letters())
	if err != nil {
		c.counts.Failures++
		c.cfg.Logger.WarnContext(ctx, "audit events cannot be archived: the records are repeated", "from", string(done.Failed), "error", err)
	}
	return done.Failed
}

// bury tells of records that cannot be counted.
func (c *call) bury(letters []aggregator.Letter) {
	for i := range letters {
		c.counts.DeadLetters++
		letters[i].Log(c.cfg.Logger)
	}
}
