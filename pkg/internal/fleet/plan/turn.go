package plan

import (
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// An exact write is applied only if no other write is for a round trip before it. On an item that
// other replicas write all the time it never would be. So a replica whose exact writes were refused
// asks for a turn. The write of a turn commutes with any other write, and raises the epoch. From
// then on each write that is under way is refused, and its reply shows the turn. Others that see it
// write nothing for the time that it asks for. The next exact write of the replica is applied.

// leastHold is the least time of a turn.
const leastHold = 2 * time.Millisecond

// Hold returns how long a turn has to last for a replica whose messages take a round trip: until its next
// write is applied, and a half longer.
func Hold(trip time.Duration) time.Duration { return min(max(trip*3/2, leastHold), schema.MaxHold) }

// Turn returns the write that asks other replicas for a turn of hold, which is whole milliseconds
// up to [schema.MaxHold]. It fits any state of the item, also one of a later epoch. It changes no balance,
// and its reply shows the item. If two replicas ask at the same time the second one is refused: it fits no
// state with a turn that it was not planned on.
func Turn(state *schema.Bucket, id ID, hold time.Duration, units int64) *Write {
	after := *state
	after.Serial++
	after.Shard.Epoch++
	after.Shard.Units += units
	after.Turn = schema.Turn{ID: id.Write, Hold: min(hold.Truncate(time.Millisecond), schema.MaxHold)}
	return &Write{ID: id, base: state, after: &after, units: units, turn: true}
}

// ask makes the update of a turn.
func (w *Write) ask(e *schema.Expression) {
	e.Require(schema.AttrEpoch, "<", schema.NumberAttribute(schema.MaxEpoch))
	if seen := w.base.Turn; seen.ID != "" {
		e.RequireAbsentOr(schema.AttrTurn, "=", seen.Attribute()) // rule: a turn ends no other that it has not seen
	} else {
		e.RequireAbsent(schema.AttrTurn)
	}
	e.Set(schema.AttrTurn, w.after.Turn.Attribute())
	e.Add(schema.AttrEpoch, 1) // rule: a turn raises the epoch
	e.Add(schema.AttrSerial, 1)
}
