package engine

import (
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/lane"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Items returns the items of the engine's table. They ask its breaker before each call. Other users
// of the table that share them share its view of outages.
func (e *Engine) Items() awsdb.Items { return e.guard }

// Timeouts returns how long one message may take, and how long a decision may take at most.
func (e *Engine) Timeouts() (attempt, budget time.Duration) {
	return e.cfg.Attempt, e.cfg.Budget
}

// Changed notes that an item was changed beside the engine, or is to be tended: decisions that
// begin from now on see it. ns is the id of the namespace.
func (e *Engine) Changed(ns string, of limiter.BucketKey, shard int) {
	if e.begin() != nil {
		return
	}
	defer e.calls.Done()
	e.lanes.Outdate(&lane.Site{Namespace: ns, Bucket: of}, shard, nil, time.Time{})
}

// Saw notes the image of an item that a write beside the engine left. The write was sent at a time, and
// not before the engine was made.
func (e *Engine) Saw(ns string, of limiter.BucketKey, image *schema.Bucket, sent time.Time) {
	if e.begin() != nil {
		return
	}
	defer e.calls.Done()
	e.lanes.Outdate(&lane.Site{Namespace: ns, Bucket: of}, image.Shard.Index, image, sent)
}
