package awslambda

import (
	"context"
	"encoding/json"
	"time"

	"github.com/ratelimit/ratelimit/pkg/aggregator"
)

// call is one call of a function.
type call struct {
	*Function

	batch  *aggregator.Batch
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
}

// flush writes the batch, and returns the first record that is not done; "" = all are.
func (c *call) flush(ctx context.Context) aggregator.Sequence {
	done, err := c.batch.Flush(ctx, c.cfg.Stream)
	c.counts.Snapshots, c.counts.RepeatedRecords = done.Written, done.Repeated
	if err != nil {
		c.counts.Failures++
		c.cfg.Logger.WarnContext(ctx, "usage cannot be written: the records are repeated", "from", string(done.Failed), "error", err)
	}
	for _, l := range c.batch.Letters() {
		c.counts.DeadLetters++
		l.Log(c.cfg.Logger)
	}
	return done.Failed
}
