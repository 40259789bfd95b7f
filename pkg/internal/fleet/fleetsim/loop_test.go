package fleetsim_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"iter"
	"math/rand/v2"
	"runtime/debug"
	"strconv"
	"time"
)

// eventLoop runs tasks one at a time, in a time that is a number. A task stops where
// it waits, and goes on with the event that it waits for. The next event follows from
// the times of events and from a seed, and from nothing else. So the same seed makes
// the same history, and the same digest.
type eventLoop struct {
	r       *rand.Rand
	now     int64 // ns since the start
	events  []event
	count   uint64
	running *task
	idle    []*task
	all     []*task
	digest  uint64
	still   int   // events since the time last changed
	fault   error // the error that ends the run
}

// maxStill is how many events a moment has at most: with more, tasks go round in a circle.
const maxStill = 100_000

// event is something that happens at a moment; of the same moment, in order.
type event struct {
	at int64
	n  uint64
	do func()
}

func (e event) before(f event) bool { return e.at < f.at || e.at == f.at && e.n < f.n }

// at has something happen, not before now.
func (l *eventLoop) at(when int64, do func()) {
	l.count++
	l.events = append(l.events, event{max(when, l.now), l.count, do})
	for i := len(l.events) - 1; i > 0 && l.events[i].before(l.events[(i-1)/2]); i = (i - 1) / 2 {
		l.events[i], l.events[(i-1)/2] = l.events[(i-1)/2], l.events[i]
	}
}

// after has something happen a while from now.
func (l *eventLoop) after(d int64, do func()) { l.at(l.now+d, do) }

// pop takes the next event out.
func (l *eventLoop) pop() event {
	e, last := l.events[0], len(l.events)-1
	l.events[0], l.events[last] = l.events[last], event{}
	l.events = l.events[:last]
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < last; child++ {
			if l.events[child].before(l.events[least]) {
				least = child
			}
		}
		if least == i {
			return e
		}
		l.events[i], l.events[least] = l.events[least], l.events[i]
		i = least
	}
}

// next has the next event happen, if it is not after a moment.
func (l *eventLoop) next(until int64) bool {
	if len(l.events) == 0 || l.events[0].at > until {
		return false
	}
	e := l.pop()
	l.still++
	if e.at > l.now {
		l.still = 0
	}
	l.now = e.at
	if l.still > maxStill {
		l.fault = fmt.Errorf("after %v: time stands still", time.Duration(l.now))
		return false
	}
	e.do()
	return l.fault == nil
}

// note adds an event to the history's digest.
func (l *eventLoop) note(what string, numbers ...int64) {
	h := fnv.New64a()
	b := strconv.AppendUint(make([]byte, 0, 96), l.digest, 36)
	b = append(strconv.AppendInt(append(b, ' '), l.now, 36), what...)
	for _, n := range numbers {
		b = strconv.AppendInt(append(b, ' '), n, 36)
	}
	_, _ = h.Write(b) // never fails
	l.digest = h.Sum64()
}

// task is something that a process does: a coroutine. Those that are done are used
// again.
type task struct {
	loop   *eventLoop
	owner  *process
	run    func()
	resume func() (struct{}, bool)
	end    func()
	yield  func(struct{}) bool
	place  int    // among the tasks of its process
	begun  uint64 // which task of the loop it is, in order
	stops  uint64 // how often it has stopped: a wake-up means one stop
	parked bool
	dead   bool // its process has ended
}

// spawn returns a task of a process that begins when it is woken.
func (l *eventLoop) spawn(owner *process, run func()) *task {
	if n := len(l.idle); n > 0 {
		t := l.idle[n-1]
		l.idle = l.idle[:n-1]
		t.owner, t.run, t.parked = owner, run, true
		return t
	}
	t := &task{loop: l, owner: owner, run: run, parked: true}
	t.resume, t.end = iter.Pull(func(yield func(struct{}) bool) {
		for t.yield = yield; ; {
			t.do()
			if t.dead {
				return
			}
			t.owner.done(t)
			l.idle = append(l.idle, t)
			t.stops++
			if !yield(struct{}{}) {
				return
			}
		}
	})
	l.all = append(l.all, t)
	return t
}

// killed ends a task wherever it is.
type killed struct{}

// do runs the task, unless its process ends before.
func (t *task) do() {
	defer func() {
		t.run = nil
		if r := recover(); r != nil {
			if _, ok := r.(killed); !ok {
				panic(fmt.Sprintf("%v\n%s", r, debug.Stack()))
			}
		}
	}()
	t.run()
}

// wake has a task go on at a moment, unless something else has it go on before.
func (t *task) wake(when int64) {
	stop := t.stops
	t.loop.at(when, func() { t.goOn(stop) })
}

func (t *task) goOn(stop uint64) {
	if !t.parked || t.stops != stop || t.dead {
		return
	}
	if p := t.owner; p.pausedUntil > t.loop.now {
		t.loop.at(p.pausedUntil, func() { t.goOn(stop) })
		return
	}
	t.parked = false
	t.stops++
	owner := t.owner
	t.loop.enter(t, func() { t.resume() })
	owner.rouse()
}

// enter does something as a task.
func (l *eventLoop) enter(t *task, do func()) {
	before := l.running
	l.running = t
	do()
	l.running = before
}

// park stops the running task until it is woken. When its process has ended it does not return.
func (l *eventLoop) park() {
	t := l.running
	if t.dead {
		panic(killed{})
	}
	t.parked = true
	if !t.yield(struct{}{}) || t.dead {
		t.dead = true
		panic(killed{})
	}
}

// stop ends all tasks, those that are done too.
func (l *eventLoop) stop() {
	for _, t := range l.all {
		t.dead = true
		l.enter(t, t.end)
	}
}

// simContext is a context in the time of an event loop. Nothing waits for its channel:
// tasks ask for its error. Its deadline is a time of its machine's clock.
type simContext struct {
	context.Context //nolint:containedctx // it is one
	process         *process
	ends            int64
	canceled        bool
}

const never = 1<<63 - 1

func (p *process) newContext(parent context.Context, ends int64) *simContext {
	if c, ok := parent.(*simContext); ok {
		ends = min(ends, c.ends)
	}
	return &simContext{Context: parent, process: p, ends: ends}
}

// Err implements context.Context.
func (c *simContext) Err() error {
	switch {
	case c.canceled:
		return context.Canceled
	case c.process.fleet.now >= c.ends:
		return context.DeadlineExceeded
	}
	return c.Context.Err()
}

// Deadline implements context.Context.
func (c *simContext) Deadline() (time.Time, bool) {
	if c.ends == never {
		return time.Time{}, false
	}
	return c.process.machine().Add(time.Duration(c.ends - c.process.fleet.now)), true
}

// endOf returns when a context ends.
func endOf(ctx context.Context) int64 {
	if c, ok := ctx.(*simContext); ok {
		return c.ends
	}
	return never
}
