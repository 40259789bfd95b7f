package engine

import (
	"context"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/lane"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// looksPerQuiet is how often a shard is read while it is to be merged.
const looksPerQuiet = 4

// tendLoop tends the buckets with several shards, until ctx ends.
func (e *Engine) tendLoop(ctx context.Context) {
	ticker := time.NewTicker(max(e.cfg.Quiet/looksPerQuiet, time.Millisecond))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			e.Tend(e.cfg.Now())
		}
	}
}

// Tend reads the shards of all buckets that were not read lately, and merges those that
// are quiet. An engine of [New] does so by itself.
func (e *Engine) Tend(now time.Time) {
	for _, t := range e.forest.All(now.Add(-max(e.cfg.Idle, schema.MaxShards*e.cfg.Quiet))) { // each merge takes a quiet time
		site := &lane.Site{Namespace: t.ID.Namespace, Bucket: t.ID.Bucket}
		leaves := t.Leaves()
		for i := range leaves {
			if now.Sub(leaves[i].At) >= e.cfg.Quiet/looksPerQuiet {
				e.lanes.Assign(site, leaves[i].Index, lane.Look)
			}
		}
		for _, index := range Mergeable(leaves, now, e.cfg.Quiet) {
			e.lanes.Assign(site, index, lane.Retire)
		}
	}
}
