package lane

import (
	"slices"
	"time"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/plan"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
)

// Items of form 1 are shared with replicas of version 1, see schema.OldForm. A lane writes
// them by exact writes alone, leases nothing on them, and leaves their shards as they are.

const (
	// oldTerm is how long a replica of version 1 serves a lease after it sent the write that
	// granted it. One that is unchanged for an eighth longer is over, by any clock.
	oldTerm = 5 * time.Second
	oldEbb  = oldTerm + oldTerm/8
	// turnAfter is after how many writes in a row that were refused a lane asks the replicas
	// of version 1 to let one pass. They write more often than an exact write takes.
	turnAfter = 2
)

// olds is what a lane knows of an item of form 1.
type olds struct {
	sights []oldSight
	lost   int // writes in a row that were refused
	asked  int // how many were lost when it last asked for a turn
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

// wrote notes whether a write was applied.
func (o *olds) wrote(applied bool) {
	if o.lost++; applied {
		o.lost, o.asked = 0, 0
	}
}

// old reports whether the item has form 1.
func (v *view) old() bool { return v.state != nil && v.state.Old != nil }

// form returns the form of the items of the lane's namespace.
func (l *Lane) form() int {
	if l.host.cfg.Form == nil {
		return schema.FormNow
	}
	return l.host.cfg.Form(l.site.Bucket.Namespace)
}

// reap has a group end the leases of form 1 that are over.
func (g *group) reap() {
	l := g.lane
	dead := l.olds.dead(l.host.clocks(g.now).Mono)
	if len(dead) > 0 && g.stage.ReapOld(dead) == nil {
		g.brings, g.pending = true, true
		l.host.Counters.Reaped.Add(int64(len(dead)))
	}
}

// turn returns the message that asks the replicas of version 1 for a turn, when it is time;
// nil for none. The lane is locked.
func (l planner) turn(now time.Time) *flight {
	if !l.view.old() || len(l.out) > 0 || l.olds.lost < l.olds.asked+turnAfter {
		return nil
	}
	l.olds.asked = l.olds.lost
	id := plan.ID{Slot: l.host.self.slotOn(l.view.state), Write: l.host.self.next()}
	return l.sender.launch(&flight{write: plan.Turn(l.view.state, id, l.sender.cost()), exact: true, once: true, turn: true}, now)
}

// convert returns the message that brings an item of form 1 into form 2 for a task, which is
// done after it; nil where that cannot be.
func (l keeper) convert(t task, now time.Time) *flight {
	if t.tries++; t.tries >= taskTries {
		return nil
	}
	stage := plan.NewStage(l.view.state, l.lately(now), plan.Options{Form: l.form()})
	if stage.ReapOld(l.olds.dead(l.host.clocks(now).Mono)) != nil || !stage.Reform() {
		return nil
	}
	l.tasks.todo = append(l.tasks.todo, t)
	w := stage.Write(plan.ID{Slot: l.host.self.slotOn(l.view.state), Write: l.host.self.next()}, l.sender.cost())
	return l.reshape(w, nil, func() {}, now)
}
