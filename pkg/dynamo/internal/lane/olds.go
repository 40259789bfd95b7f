package lane

import (
	"slices"
	"time"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
)

// Items of form 1 are shared with replicas of version 1, see schema.OldForm. A lane writes
// them by exact writes alone, leases nothing on them, and leaves their shards as they are.

const (
	// oldTerm is how long a replica of version 1 serves a lease after it sent the write that
	// granted it. One that is unchanged for an eighth longer is over, by any clock.
	oldTerm = 5 * time.Second
	oldEbb  = oldTerm + oldTerm/8
)

// olds is what a lane knows of an item of form 1.
type olds struct {
	sights []oldSight
}

// oldSight is a lease of a replica of version 1.
type oldSight struct {
	schema.OldLease

	since int64 // first seen, in ms of the monotonic clock
}

// saw takes in the leases of a state; mono is the monotonic clock in ms.
func (o *olds) saw(state *schema.Bucket, mono int64) {
	if state == nil || state.Old == nil {
		o.sights = nil
		return
	}
	seen := make([]oldSight, 0, len(state.Old.Leases))
	for _, l := range state.Old.Leases {
		s := oldSight{l, mono}
		if i := slices.IndexFunc(o.sights, func(was oldSight) bool { return was.Replica == l.Replica && was.Text == l.Text }); i >= 0 {
			s.since = o.sights[i].since
		}
		seen = append(seen, s)
	}
	o.sights = seen
}

// dead returns the leases that their holders serve no more.
func (o *olds) dead(mono int64) []schema.OldLease {
	var dead []schema.OldLease
	for i := range o.sights {
		if mono-o.sights[i].since >= oldEbb.Milliseconds() {
			dead = append(dead, o.sights[i].OldLease)
		}
	}
	return dead
}
