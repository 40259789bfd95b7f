package lane

import (
	"slices"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// step decides the requests that can be decided. It returns the message to send and the
// work for another shard, each nil for none. A lane without a turn sends nothing: it waits for one, and
// is stepped then. The lane is locked.
func (l *Lane) step(now time.Time, turn bool) (m message, left *departure) {
	l.running = !turn
	l.consult(now)
	if l.host.stopped.Err() != nil { // no time wakes the lane any more
		l.closer.stop(now)
		return nil, nil
	}
	l.closer.resume(now)
	l.closer.expire(now)
	if l.view.elsewhere(l.index) {
		if len(l.out) > 0 {
			return nil, nil
		}
		return nil, l.leave()
	}
	for _, r := range l.queue {
		l.view.advance(r.at(l.view.clock)) // rule: a request that waited has the time of the newest correction
	}
	if l.blocked() {
		return nil, nil
	}
	held := l.serveAll(now)
	if len(held) > 0 && len(l.out) == 0 { // the lease's own clock has to go on
		l.view.drift(now)
		l.wake(now.Add(heldTick))
	}
	if turn {
		m = l.message(now)
	} else if l.host.silent(now) { // rule: no lane waits for the turn of a server that does not answer
		l.closer.refuse(errSilent, now)
	} else if first := slices.IndexFunc(l.queue, func(r *Request) bool { return r.state == waiting }); first >= 0 {
		l.wake(l.queue[first].expires)
	}
	l.queue = append(held, l.queue...)
	return m, nil
}

// message returns the message that is to be sent next, nil for none.
func (l *Lane) message(now time.Time) message {
	var m message
	waits, held := false, l.turns.held(now)
	if held {
		l.wake(l.turns.free())
	}
	if !held && !l.host.closing.Load() {
		m, waits = l.keeper.tidy(now)
	}
	if !held && m == nil && !waits {
		m, waits = l.lease.due(now)
	}
	if m == nil && !waits && (len(l.queue) > 0 || l.newer.limits != nil) && !l.paced(now) {
		m = l.plan(now)
	}
	return m
}

// heldTick is the time between two checks of requests that wait for a lease.
const heldTick = 2 * time.Millisecond

// serveAll decides the requests that the lease can decide, and returns those that wait
// for it. The queue is left with those that the item has to decide.
func (l *Lane) serveAll(now time.Time) (held []*Request) {
	queue := l.queue
	l.queue = nil
	for _, r := range queue {
		switch s, _ := l.lease.serve(r, now); s {
		case byLease:
		case byUpdate, byGrant:
			held = append(held, r)
		case byItem:
			l.queue = append(l.queue, r)
		}
	}
	return held
}

// plan returns the message that decides the waiting requests, nil for none.
func (l *Lane) plan(now time.Time) message {
	g := l.planner.newGroup(now)
	if g == nil {
		return l.sender.read(now)
	}
	g.fill(l.queue)
	l.queue = g.left
	switch {
	case g.held && (!g.brings || g.first() || !l.turner.beside(now)): // rule: a turn comes beside writes under way
	case g.held, g.stage.Exact() && l.turner.turnDue(g.brings, now):
		l.queue = append(g.actors, l.queue...)
		return l.turner.turn(now, false)
	case len(g.actors) > 0 || g.brings || g.stage.Marks():
		return l.writer.write(g.stage, g.actors, now)
	case len(l.out) == 0 && (len(l.queue) > 0 || l.view.blind()):
		return l.look(now)
	}
	return nil
}

// look returns a read of the item. It counts those whose replies may correct the clock.
func (l *Lane) look(now time.Time) message {
	if l.view.clock.Doubtful {
		l.view.looks++
	}
	return l.sender.read(now)
}

// paced reports whether the pace of the writes says to wait.
func (l *Lane) paced(now time.Time) bool {
	at := l.pace.Next(len(l.out), l.writers(now))
	if len(l.out) >= maxUnderWay {
		return true
	}
	if now.Before(at) {
		l.wake(at)
		return true
	}
	return false
}

// maxUnderWay bounds the messages of a lane that are under way. Requests beyond it wait.
const maxUnderWay = schema.ChannelCount
