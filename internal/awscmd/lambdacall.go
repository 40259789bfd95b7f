package awscmd

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/ratelimit/ratelimit/pkg/aggregator"
)

// lambdaCall is one call of a function.
type lambdaCall struct {
	cfg    *FunctionConfig
	to     aggregator.Snapshots
	batch  *aggregator.Batch
	splits aggregator.OpenSplits
	lines  *aggregator.Lines // nil = there is no archive
	newest time.Time
	counts lambdaCounts
}

// take adds a record to the batch.
func (c *lambdaCall) take(raw json.RawMessage) {
	from, problem := decodeRecord(raw)
	r := c.cfg.Stream.Record(from)
	if problem != nil {
		r.Problem = problem
	}
	c.counts.Records++
	if r.Time.After(c.newest) {
		c.newest = r.Time
	}
	c.batch.Add(&r)
	c.splits.Add(&r)
	if c.lines != nil {
		c.lines.Add(&r)
	}
}

// report writes the metrics of the call.
func (c *lambdaCall) report() {
	now := c.cfg.Now()
	if !c.newest.IsZero() { // else no record has a time
		c.counts.AgeSeconds = max(now.Sub(c.newest), 0).Round(time.Millisecond).Seconds()
	}
	c.counts.write(c.cfg.Metrics, c.cfg.Table, now)
}

// flush writes the batch and the archive at once, so that neither takes the time of the other. It returns
// the first record that is not done; "" = all are.
func (c *lambdaCall) flush(ctx context.Context) aggregator.Sequence {
	var archived aggregator.Archived
	var archiveErr error
	var archiving sync.WaitGroup
	if c.lines != nil {
		archiving.Go(func() { archived, archiveErr = c.lines.Flush(ctx, c.cfg.Archive) })
	}
	uncounted := c.count(ctx)
	archiving.Wait()
	c.finishSplits(ctx)
	unarchived := c.archived(ctx, archived, archiveErr)
	if uncounted == "" || unarchived != "" && unarchived.Compare(uncounted) < 0 {
		return unarchived
	}
	return uncounted
}

// count writes the batch, and returns the first record that is not counted; "" = all are.
func (c *lambdaCall) count(ctx context.Context) aggregator.Sequence {
	done, err := c.batch.Flush(ctx, c.to)
	c.counts.Snapshots, c.counts.RepeatedRecords, c.counts.MisdatedRecords = done.Written, done.Repeated, c.batch.Misdated()
	if err != nil {
		c.counts.Failures++
		c.cfg.Logger.WarnContext(ctx, "usage cannot be written: the records are repeated", "from", string(done.Failed), "error", err)
	}
	c.bury(c.batch.Letters())
	return done.Failed
}

// finishSplits finishes the splits that no replica has finished. No record waits for it: a replica
// that uses the bucket finishes them, too.
func (c *lambdaCall) finishSplits(ctx context.Context) {
	if c.cfg.Splits == nil {
		return
	}
	finished, err := c.splits.Finish(ctx, c.cfg.Splits)
	c.counts.Splits = finished
	if err != nil {
		c.counts.Failures++
		c.cfg.Logger.WarnContext(ctx, "splits of buckets cannot be finished; replicas that use them will", "error", err)
	}
}

// archived reports a flush of the archive, and returns the first event that is not there; "" = all are.
func (c *lambdaCall) archived(ctx context.Context, done aggregator.Archived, err error) aggregator.Sequence {
	if c.lines == nil {
		return ""
	}
	c.counts.ArchivedEvents = done.Events
	c.bury(c.lines.Letters())
	if err != nil {
		c.counts.Failures++
		c.cfg.Logger.WarnContext(ctx, "audit events cannot be archived: the records are repeated", "from", string(done.Failed), "error", err)
	}
	return done.Failed
}

// bury reports records that cannot be counted.
func (c *lambdaCall) bury(letters []aggregator.Letter) {
	for i := range letters {
		c.counts.DeadLetters++
		letters[i].Log(c.cfg.Logger)
	}
}
