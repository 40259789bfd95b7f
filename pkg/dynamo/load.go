package dynamo

import (
	"slices"
	"time"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
)

const (
	// DefaultShardUnits is how many write units a second DynamoDB grants one item.
	DefaultShardUnits = 1000
	// DefaultQuiet is how long a shard must be used little before it is merged.
	DefaultQuiet = time.Minute

	// loadWindow is what the use of write units is averaged over, at least.
	loadWindow = time.Second
	// A shard is split when it uses splitPercent of its units, and merged when it and
	// the other half use no more than quietPercent each, so that the two in one do not
	// come near to being split again.
	splitPercent = 80
	quietPercent = 25
)

// load is how fast a shard uses write units, all replicas together. The item
// counts them, each write its own and those of refused ones before it; who sees the
// item twice knows the rate between.
type load struct {
	epoch int64
	since time.Time // of the window
	units int64     // at its beginning
	busy  bool      // the last window used enough for a split
	quiet time.Time // no window since has used more than a merge allows
}

// observe learns from an item as it was seen now. most is what a shard is good for, in
// units a second.
func (o *load) observe(now time.Time, s *schema.Shard, most int64) {
	if o.since.IsZero() || s.Epoch != o.epoch || s.Units < o.units {
		*o = load{epoch: s.Epoch, since: now, units: s.Units, quiet: now}
		return
	}
	elapsed := now.Sub(o.since)
	if elapsed < loadWindow {
		return
	}
	used := s.Units - o.units
	percent := float64(used) * 100 / (float64(most) * elapsed.Seconds())
	o.busy = percent >= splitPercent
	if percent > quietPercent {
		o.quiet = now
	}
	o.since, o.units = now, s.Units
}

// sinceQuiet returns how long the load has been low.
func (o *load) sinceQuiet(now time.Time) time.Duration { return now.Sub(o.quiet) }

// divisible reports whether the shard could be split if nothing were out on lease.
func (v *view) divisible() bool {
	idle := *v
	idle.balances = slices.Clone(v.balances)
	for i := range idle.balances {
		idle.balances[i].leased = 0
	}
	return idle.splits()
}
