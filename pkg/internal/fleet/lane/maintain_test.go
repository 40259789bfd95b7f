package lane

import (
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// A task for which there is nothing to do is left out: no turn is asked for it, and the next task is not
// delayed.
func TestTasksWithoutWorkAreLeftOut(t *testing.T) {
	const other, level = 2, 4 // shard 0 at level 4 takes in shard 2 first, and then shard 1
	birth := int64(7)
	retired := func(birth int64) *schema.Bucket {
		return &schema.Bucket{Shard: schema.Shard{Index: other, Level: level, Epoch: 9, Birth: birth, Retired: true}}
	}
	merge := task{TaskKind: absorb, index: other, found: retired(birth)}
	for name, tt := range map[string]struct {
		todo    []task
		crowded bool // others write to the item
		mine    bool // the lane has a turn
		turn    bool // the message asks for one
		merge   bool // the message is the merge
		left    int  // tasks that stay
	}{
		"a merge":                              {todo: []task{merge}, merge: true, left: 1},
		"behind one of a later level":          {todo: []task{{TaskKind: absorb, index: 1, found: retired(1)}, merge}, merge: true, left: 1},
		"behind one with a turn":               {todo: []task{{TaskKind: absorb, index: 1, found: retired(1)}, merge}, crowded: true, mine: true, merge: true, left: 1},
		"behind one that was tried often":      {todo: []task{{TaskKind: absorb, index: other, tries: taskTries}, merge}, merge: true, left: 1},
		"behind one of an earlier split":       {todo: []task{{TaskKind: absorb, index: other, found: retired(birth - 1)}, merge}, merge: true, left: 1},
		"behind a retirement of the first":     {todo: []task{{TaskKind: Retire}, merge}, merge: true, left: 1},
		"beside others":                        {todo: []task{{TaskKind: Retire}, merge}, crowded: true, turn: true, left: 1},
		"nothing beside others":                {todo: []task{{TaskKind: absorb, index: 1, found: retired(1)}, {TaskKind: Retire}}, crowded: true},
		"a merge that was made, beside others": {todo: []task{{TaskKind: absorb, index: 3, found: retired(birth)}}, crowded: true},
	} {
		t.Run(name, func(t *testing.T) {
			_, l, _, at := fresh(t)
			now, seen := *at, bench(t, 500, 1000).view
			state := *seen.state
			state.Shard.Level, state.Shard.Births[schema.BirthSlot(level)], state.Shard.Births[schema.BirthSlot(2)] = level, birth, 1
			l.view.known, l.view.state, l.view.quick, l.view.head = true, &state, plan.At(&state, 0), &state
			l.pace.Reply(Least)
			if tt.crowded {
				l.peers.Observe(nil, 1, now)
				l.peers.Observe([]schema.WriteID{schema.NewWriteID(7, 1)}, 1, now)
			}
			l.keeper.tasks.todo, l.turns.mine, l.view.sent = tt.todo, tt.mine, now
			l.keeper.tasks.load.Quiet = now.Add(-time.Hour)
			m, waits := l.keeper.tidy(now)
			_, turn := m.(*turnWrite)
			w, merged := m.(*shardWrite)
			if turn != tt.turn || merged != tt.merge || waits != (tt.turn || tt.merge) {
				t.Fatalf("got the message %T, and the lane waits: %t", m, waits)
			}
			if merged && w.write.After().Shard.Level != level/2 {
				t.Errorf("the write leaves level %d", w.write.After().Shard.Level)
			}
			if got := len(l.keeper.tasks.todo); got != tt.left {
				t.Errorf("%d tasks are left, want %d", got, tt.left)
			}
		})
	}
}
