package lane

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// keeper does the maintenance tasks of a lane.
type keeper struct {
	*item
	*traffic
	*wakes

	tasks  tasks
	view   *view
	lease  leasing
	turns  *turns
	sender *sender
	turner *turner
}

// tidy does a task, if there is one and nothing of the lane is under way. It returns the
// message to send, nil for none, and whether nothing else may be sent before.
func (l *keeper) tidy(now time.Time) (m message, waits bool) {
	t, v := &l.tasks, l.view
	if !v.known || v.state == nil {
		if len(t.todo) > 0 && !v.known && len(l.out) == 0 {
			if now.Before(t.looked) { // the last one was not answered
				l.wake(t.looked)
				return nil, false
			}
			t.looked = now.Add(taskRest)
			return l.sender.read(now), true
		}
		t.todo = nil
		return nil, false
	}
	moving := v.state.Shard.Moving
	busy := t.load.Busy && plan.Splits(v.state)
	switch {
	case v.clock.Doubtful || !moving && !busy && len(t.todo) == 0:
		return nil, false
	case now.Before(t.rest):
		l.wake(t.rest)
		return nil, false
	case moving && t.made != v.state.Shard.Other().Epoch: // rule: a split is finished when its own half is there
		return l.make(now), false
	case len(l.out) > 0:
		return nil, true
	}
	return l.work(now, busy)
}

// work does a task of an item for which nothing is under way: it clears a split, does the first of the tasks,
// or splits. Its results are those of tidy.
func (l *keeper) work(now time.Time, splits bool) (m message, waits bool) {
	t, state := &l.tasks, l.view.state
	moving := state.Shard.Moving
	for !moving && len(t.todo) > 0 && l.idle(&t.todo[0], now) { // rule: no turn is asked for a task without work
		t.todo = t.todo[1:]
	}
	switch {
	case !moving && !splits && len(t.todo) == 0:
		return nil, false
	case (moving || len(t.todo) == 0 || t.todo[0].TaskKind != Look) && l.turner.turnDue(true, now):
		return l.turner.turn(now, false), true
	case moving:
		w, err := plan.Clear(state, l.sender.cost())
		return l.reshape(w, err, func() {}, now), true
	case len(t.todo) > 0:
		next := t.todo[0]
		t.todo = t.todo[1:]
		m = l.do(next, now)
		return m, m != nil
	}
	w, err := plan.Split(state, l.lately(now), l.sender.cost())
	return l.reshape(w, err, func() { l.host.Counters.Splits.Add(1) }, now), true
}

// idle reports whether there is nothing to do for a task: the shard is not to be retired, or it is not the
// one that takes in the shard of the task next. A shard of an earlier split is never taken in.
func (l *keeper) idle(t *task, now time.Time) bool {
	shard := &l.view.state.Shard
	switch t.TaskKind {
	case Look:
		return false
	case Retire:
		return shard.Index < max(shard.Level/2, 1) || now.Sub(l.tasks.load.Quiet) < l.host.cfg.Quiet
	case absorb:
		if !shard.Sharded() || t.tries >= taskTries {
			return true
		}
		other := shard.Other()
		return other.Index != t.index || t.found != nil && t.found.Shard.Birth < other.Birth
	}
	return true
}

// lately is the time at which a task changes the item: not before any that something was
// taken at.
func (l *keeper) lately(now time.Time) int64 {
	return max(l.view.now, l.view.state.Time(), l.host.cfg.Clock.Correct(now).UnixMilli())
}

// make returns the message that makes the other half of a split, nil while one is under way. Other
// writes of the item go on: the half has the tokens of the split.
func (l *keeper) make(now time.Time) message {
	v := l.view
	switch {
	case slices.ContainsFunc(l.out, isMaking):
		return nil
	case now.Sub(v.sent) > makeView || now.Round(0).Sub(v.sent.Round(0)) > makeView:
		if len(l.out) > 0 { // its reply is a newer state
			return nil
		}
		return l.sender.read(now)
	}
	made, err := plan.Make(v.state)
	if err != nil {
		return nil
	}
	l.start() // requests that wait are not held up by it
	item := schema.NewBucketItem(l.site.Namespace, l.site.Bucket, made.Shard.Index)
	return l.sender.launch(&making{by: l, put: plan.PutMade(made, item), index: made.Shard.Index, epoch: made.Shard.Epoch}, now)
}

// do does a task of an item that is known.
func (l *keeper) do(t task, now time.Time) message {
	v := l.view
	switch t.TaskKind {
	case Look:
		return l.sender.read(now)
	case Retire:
		w, err := plan.Retire(v.state, l.lately(now), l.sender.cost())
		return l.reshape(w, err, func() {}, now)
	case absorb:
		return l.absorb(t, now)
	}
	return nil
}

// absorb merges the other half of the last split into the shard, when that is retired
// or gone.
func (l *keeper) absorb(t task, now time.Time) message {
	state := l.view.state
	t.tries++
	if t.found == nil && !t.gone { // only an item that is missing after the state of its heir is missing for good
		return l.sender.launch(&peeking{by: l, task: t}, now)
	}
	l.tasks.todo = append(l.tasks.todo, t) // again, if other writes get in its way
	if t.found != nil && t.found.Version.Newer(state.Version) {
		stage := plan.NewStage(state, l.lately(now), plan.Options{})
		if brought, err := stage.Bring(t.found.Limits, t.found.Version.Generation); err != nil || brought != plan.Newer && brought != plan.Pending {
			return nil
		}
		w := stage.Write(l.sender.newID(), l.sender.cost())
		return l.reshape(w, nil, func() {}, now)
	}
	w, err := plan.Absorb(state, t.found, l.lately(now), l.sender.cost())
	return l.reshape(w, err, func() { l.host.Counters.Merges.Add(1) }, now)
}

// reshape returns the message of a write that changes the form of the item; nil for none.
// It is sent once. done is called when it was applied.
func (l *keeper) reshape(w *plan.Write, err error, done func(), now time.Time) message {
	if err != nil || w == nil {
		return nil
	}
	l.pace.Sent(now)
	return l.sender.launch(&shardWrite{once{write: w}, l, done}, now)
}

// shardWrite is a write that changes the form of the item.
type shardWrite struct {
	once

	by   *keeper
	done func() // called when it was applied
}

func (m *shardWrite) send(ctx context.Context) (reply, error) {
	return m.by.apply(ctx, m.write, !m.write.Exact())
}

func (m *shardWrite) conclude(got reply, err error, now time.Time) (again bool) {
	m.by.sender.concludeOnce(m, got, err, now)
	return false
}

func (m *shardWrite) came(image *schema.Bucket, refused bool, now time.Time) {
	l := m.by
	l.sender.lane.sees(image, &m.copies, now)
	l.turns.ended(m.write, image, refused)
	l.sender.counted(refused)
	if !refused {
		m.done()
	}
}

func (m *shardWrite) lost(perhaps bool, err error, now time.Time) {
	l := m.by
	l.lease.missed(missOf(perhaps), now)
	l.rest("changing a shard", err, now)
}

// making is the write that makes another shard.
type making struct {
	copies

	by    *keeper
	put   *schema.ItemWrite
	index int   // of the shard
	epoch int64 // of it
}

func isMaking(m message) bool {
	_, is := m.(*making)
	return is
}

// alone reports false: other writes change nothing of the half.
func (m *making) alone() bool { return false }

func (m *making) send(ctx context.Context) (reply, error) { return m.by.put(ctx, m.put) }

func (m *making) conclude(got reply, err error, now time.Time) (again bool) {
	l := m.by
	l.sender.arrived(m)
	if err == nil && got.refused {
		there, unreadable := schema.ParseBucket(l.host.cfg.Table, l.site.Key(m.index), got.item, nil)
		if err = unreadable; err == nil && there.Shard.Epoch < m.epoch {
			err = errors.New("another item has the key of a new shard")
		}
	}
	if err != nil {
		l.rest("making a shard", err, now)
		return false
	}
	l.tasks.made = m.epoch
	return false
}

// peeking is the read of the other half of a split, for a task.
type peeking struct {
	copies
	task

	by *keeper
}

func (p *peeking) send(ctx context.Context) (reply, error) {
	return p.by.get(ctx, p.by.site.Key(p.index))
}

func (p *peeking) conclude(got reply, err error, now time.Time) (again bool) {
	l, t := p.by, p.task
	l.sender.arrived(p)
	if err == nil && len(got.item) == 0 {
		t.gone = true
	} else if err == nil {
		t.found, err = schema.ParseBucket(l.host.cfg.Table, l.site.Key(t.index), got.item, nil)
		if err == nil && !t.found.Shard.Retired {
			return false // it is a shard again, or still
		}
	}
	if err != nil {
		l.rest("reading a shard", err, now)
	}
	l.tasks.todo = append(l.tasks.todo, t)
	return false
}

// rest has the lane leave its tasks alone for a while.
func (l *keeper) rest(task string, err error, now time.Time) {
	l.tasks.rest = now.Add(taskRest)
	l.wake(l.tasks.rest)
	l.host.warn(task, "a task of a bucket failed, and is done again later", slog.String("task", task), slog.String("item", l.key.String()), slog.Any("error", awsdb.Translate(err)))
}
