package lane

import (
	"context"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// turnAfter is how many exact writes of a lane in a row other writes refuse before the lane
// asks for a turn.
const turnAfter = 2

// turns are the turns of an item: those that its lane asks for, and those that others have. The
// zero turns has seen none.
type turns struct {
	lost  int            // exact writes of the lane in a row that others came before
	mine  bool           // the lane has a turn, and made no exact write since
	seen  schema.WriteID // the last turn of another replica
	until time.Time      // nothing is written before, for that turn
	yield time.Time      // nor before, for the leases that others return
}

// mostYield is for how many leases of others a lane writes nothing, a round trip for each, and no longer
// than for a turn.
const mostYield = 3

// saw takes in the turn of an image that a replica has, or none. trip is the round trip of the lane: the
// reply took a half of it, and the next write takes the other half.
func (t *turns) saw(turn schema.Turn, self uint32, trip time.Duration, now time.Time) {
	switch {
	case turn.ID == "" || turn.ID.Replica() == self:
		t.until = time.Time{} // rule: a turn is over with its exact write
	case turn.ID != t.seen: // rule: each turn is held once
		t.seen, t.until = turn.ID, now.Add(max(turn.Hold-trip, 0)) // rule: nothing is written while another replica has a turn
	}
}

// yields has the lane write nothing while others return the leases that an image shows: its own is returned.
func (t *turns) yields(image *schema.Bucket, trip time.Duration, now time.Time) {
	t.yield = now.Add(min(trip*time.Duration(min(image.Holders(), mostYield)), schema.MaxHold)) // rule: returns of others come before writes
}

// free returns when no other replica has a turn any more, nor returns a lease.
func (t *turns) free() time.Time { return later(t.until, t.yield) }

// held reports whether others come first.
func (t *turns) held(now time.Time) bool { return now.Before(t.free()) }

// ended takes in the end of a write, as an image of the item shows it.
func (t *turns) ended(w *plan.Write, image *schema.Bucket, refused bool) {
	switch {
	case refused && w.Overtaken(image):
		t.lost, t.mine = t.lost+1, false
	case w.Exact():
		t.mine = false
		if !refused {
			t.lost = 0
		}
	}
}

// asked takes in the end of the write that asks for a turn.
func (t *turns) asked(refused bool) {
	if refused { // another turn or exact write came first
		t.lost = turnAfter - 1
	} else {
		t.lost, t.mine = 0, true
	}
}

// turner asks other replicas for a turn.
type turner struct {
	*item
	*traffic

	view   *view
	turns  *turns
	sender *sender
}

// turnDue reports whether a turn is to come before an exact write. Where soon is set it does so
// before the write was refused, if that is likely.
func (l *turner) turnDue(soon bool, now time.Time) bool {
	state := l.view.state
	if l.turns.mine || state == nil || state.Shard.Epoch >= schema.MaxEpoch { // rule: a turn is not asked for again before the exact write
		return false
	}
	return l.turns.lost >= turnAfter || soon && l.crowded(now) // rule: a turn is asked for where other writes come before
}

// beside reports whether a turn is to come before an exact write that waits for the messages under way. It
// commutes with them.
func (l *turner) beside(now time.Time) bool { return !l.turns.held(now) && l.turnDue(true, now) }

// crowded reports whether other replicas write to the item so often that no exact write finds it
// at rest for a round trip.
func (l *turner) crowded(now time.Time) bool {
	return l.writers(now) > 1 && l.pace.RoundTrip() >= Least
}

// turn returns the message that asks other replicas for a turn, in place of an exact write that
// is due. That is planned again on its reply. own is whether no other replica can make it. The lane is locked.
func (l *turner) turn(now time.Time, own bool) message {
	l.turns.lost = 0
	w := plan.Turn(l.view.state, l.sender.newID(), plan.Hold(l.pace.RoundTrip()), l.sender.cost(), own)
	l.pace.Again()
	return l.sender.launch(&turnWrite{once{write: w}, l}, now)
}

// turnWrite is a write that asks other replicas for a turn.
type turnWrite struct {
	once

	by *turner
}

func (m *turnWrite) send(ctx context.Context) (reply, error) { return m.by.apply(ctx, m.write, true) }

func (m *turnWrite) conclude(got reply, err error, now time.Time) (again bool) {
	m.by.sender.concludeOnce(m, got, err, now)
	return false
}

func (m *turnWrite) came(image *schema.Bucket, refused bool, now time.Time) {
	l := m.by
	l.sender.lane.sees(image, &m.copies, now)
	l.turns.asked(refused)
	l.sender.counted(refused)
}

// lost has the next write tried without a turn.
func (m *turnWrite) lost(bool, error, time.Time) { m.by.turns.mine = true }
