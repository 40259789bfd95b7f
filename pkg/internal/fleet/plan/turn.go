package plan

import (
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// An exact write is applied only if no other write is for a round trip before it. On an item that
// other replicas write all the time it never would be. So a replica whose exact writes were refused
// asks for a turn. The write of a turn commutes with any other write, and raises the epoch. From
// then on each write that is under way is refused, but the first take of a replica, and its reply shows the turn. Others that see it
// write nothing for the time that it asks for. The next exact write of the replica is applied.

// leastHold is the least time of a turn.
const leastHold = 2 * time.Millisecond

// Hold returns how long a turn has to last for a replica whose messages take a round trip: until its next
// write is applied, and a half longer.
func Hold(trip time.Duration) time.Duration { return min(max(trip*3/2, leastHold), schema.MaxHold) }

// Turn returns the write that asks other replicas for a turn of hold, which is whole milliseconds
// up to [schema.MaxHold]. It changes no balance, and its reply shows the item. If two replicas ask at the
// same time the second one is refused. own is whether the exact write is the replica's own, as the return of
// its lease. Then the turn fits a state of any epoch. A change that another replica may have made is not: that
// turn fits its own epoch alone.
func Turn(state *schema.Bucket, id ID, hold time.Duration, units int64, own bool) *Write {
	after := *state
	after.Serial++
	after.Shard.Epoch++
	after.Shard.Units += units
	after.Turn = schema.Turn{ID: id.Write, Hold: min(hold.Truncate(time.Millisecond), schema.MaxHold)}
	return &Write{ID: id, base: state, after: &after, units: units, turn: true, own: own}
}

// ask makes the update of a turn.
func (w *Write) ask(to *schema.ItemWrite) {
	if w.own {
		to.Require(schema.AttrEpoch, "<", schema.NumberAttribute(schema.MaxEpoch))
		to.RequireAbsent(schema.AttrRetired)                              // nothing is written to such a shard any more, whose next epoch is known
		to.RequireAbsentOr(schema.AttrTurn, "=", w.base.Turn.Attribute()) // rule: a turn ends no other that it has not seen
	} else {
		w.pin(to)
	}
	to.Set(schema.AttrTurn, w.after.Turn.Attribute())
	to.Add(schema.AttrEpoch, 1) // rule: a turn raises the epoch
	to.Add(schema.AttrSerial, 1)
}
