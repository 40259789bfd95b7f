package lane

import (
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// Freshness is how old a state may be that a request is denied by: tokens that other
// replicas gave back can be missed for so long.
const Freshness = 100 * time.Millisecond

// view is the last state that a lane saw of its item.
type view struct {
	known bool
	state *schema.Bucket // as the newest reply showed it; nil = there is no item
	quick *plan.View     // of state; nil with it
	asked uint64         // the lane's count of events when the message left that brought it
	sent  time.Time      // when that was
	at    int64          // the lane's clock then
	now   int64          // the lane's clock: the latest of any caller, corrected; never goes back
	head  *schema.Bucket // state with the lane's own writes under way; nil = no write can be planned on it
	clock awsdb.Reading
	looks int            // reads that left since the clock is not trusted: their replies may correct it
	moved time.Time      // when now was last known to be the time
	then  int64          // the lane's clock at moved
	seen  schema.Version // of the state's limits, with the generation of requests that no write has put into the item
	since time.Time      // a state that was asked for before is not fresh: the item was changed beside the lane
}

// fresh reports whether a request may be denied by the state now, by the lane's count of events
// when it arrived.
func (v *view) fresh(asked uint64, now time.Time) bool {
	return v.asked > asked || now.Sub(v.sent) <= Freshness && !v.sent.Before(v.since)
}

// elsewhere reports whether another shard stands for this one: it is none, or no more.
func (v *view) elsewhere(index int) bool {
	return v.known && (v.state == nil && index > 0 || v.state != nil && v.state.Shard.Retired)
}

// advance brings the lane's clock up to a time. A clock that is not trusted moves nothing.
func (v *view) advance(at int64) {
	if !v.clock.Doubtful {
		v.now = max(v.now, at)
	}
}

// mostLooks is how many such reads a lane waits for. Replies may be lost, and the machine may sleep again.
const mostLooks = 2 * awsdb.JumpReplies

// blind reports whether the clock is not trusted, and replies may correct it soon, as after a sleep. Those with a date
// that is too far off do not. A limit has been refilled in the sleep, so that a take as of before it would not show.
func (v *view) blind() bool { return v.clock.Doubtful && v.clock.Far == 0 && v.looks < mostLooks }

// drift brings the lane's clock up by the time that passed on the machine's.
func (v *view) drift(now time.Time) {
	if !v.moved.IsZero() {
		v.advance(v.then + now.Sub(v.moved).Milliseconds()) // rule: time that the lane's clock counted is not counted again
	}
	v.mark(now)
}

// mark notes that the lane's clock shows the time now.
func (v *view) mark(now time.Time) { v.moved, v.then = now, v.now }

// bare returns the item as it was last seen, at the lane's time.
func (v *view) bare(r *plan.Request) *plan.Stage {
	state := v.state
	if state == nil {
		state = schema.NewBucket(r.Limits, r.Generation, v.now)
	}
	return plan.NewStage(state, v.now, plan.Options{})
}

// units is how many write units a write of the item takes.
func (v *view) units() int64 {
	if v.state == nil {
		return 1
	}
	return v.state.WriteUnits()
}
