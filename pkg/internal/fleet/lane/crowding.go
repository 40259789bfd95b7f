package lane

import (
	"container/list"
	"sync"
	"time"
)

const (
	// firstBound is how many messages of a process may be under way at first. leastBound and mostBound limit
	// what becomes of it.
	firstBound, leastBound, mostBound = 64, 16, 1024
	// partBound is how often each of them is halved for a part of the server: each of its servers has some parts.
	partBound = 2
	// longTrip is the round trip above which fewer messages are sent. It is two thirds of limiter.DefaultTimeout.
	longTrip = 10 * time.Millisecond
	// widenPart is for which part of the bound there must be short round trips until it grows by one.
	widenPart = 4
	// oldestTurn is which of the turns goes to the lane that has waited longest.
	oldestTurn = 4
)

// waiter is a lane that waits for a turn.
type waiter interface {
	// leased reports whether it has a lease.
	leased() bool
}

// crowding bounds the messages under way, and has the lanes that wait for a turn to send one. A server that is
// asked for more than it can do answers all late, and what is late is asked for again. The bound
// falls by an eighth where round trips become long, and grows where they are short and lanes wait. One turn of four goes
// to the lane without a lease that has waited longest. The others go to lanes with a lease, then to the lane that came
// last: its callers wait still. A nil *crowding has no bound. It is safe for concurrent use.
type crowding struct {
	mu       sync.Mutex
	halved   int // how often the bounds are
	bound    int
	running  int       // messages under way, and lanes that have a turn
	short    int       // round trips since the bound changed
	narrowed time.Time // when the bound fell last
	turns    int       // that waiting lanes had
	leased   list.List // of waiter: those with a lease
	others   list.List
	waiting  map[waiter]struct{} // all of both
}

// newCrowding returns one whose bounds are halved some times.
func newCrowding(halved int) *crowding {
	return &crowding{halved: halved, bound: firstBound >> halved, waiting: make(map[waiter]struct{})}
}

// enter gives a lane a turn, if there is one now: leave must follow. Else it waits, and next will return it; added says
// that it did not wait before. The lane is locked.
func (c *crowding) enter(l waiter) (turn, added bool) {
	if c == nil {
		return true, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running < c.bound { // rule: messages above the bound wait
		c.running++
		return true, false
	}
	if _, waits := c.waiting[l]; waits {
		return false, false
	}
	c.waiting[l] = struct{}{}
	if l.leased() {
		c.leased.PushBack(l)
	} else {
		c.others.PushBack(l)
	}
	return false, true
}

// leave ends a turn.
func (c *crowding) leave() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running--
}

// next gives a lane that waits a turn: leave must follow. nil = there is no lane, or no turn.
func (c *crowding) next() waiter {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) == 0 || c.running >= c.bound {
		return nil
	}
	of, place := &c.others, c.others.Back()      // rule: most turns go to the lane that came last
	if first := c.leased.Front(); first != nil { // rule: a lane with a lease comes before others
		of, place = &c.leased, first
	}
	c.turns++
	if oldest := c.others.Front(); oldest != nil && (c.turns%oldestTurn == 0 || len(c.waiting) > maxOwed) { // rule: each lane has a turn in the end
		of, place = &c.others, oldest
	}
	l, _ := of.Remove(place).(waiter)
	delete(c.waiting, l)
	c.running++
	return l
}

// judge brings the bound up to date by the end of a message that took so long.
func (c *crowding) judge(now time.Time, took time.Duration, answered bool) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case took > longTrip:
		if now.Sub(c.narrowed) >= longTrip { // rule: long round trips at a time narrow the bound once
			c.bound, c.short, c.narrowed = max(c.bound-max(c.bound/8, 1), leastBound>>c.halved), 0, now
		}
	case answered && c.running >= c.bound: // rule: the bound grows where lanes wait
		if c.short++; c.short*widenPart >= c.bound {
			c.bound, c.short = min(c.bound+1, mostBound>>c.halved), 0
		}
	}
}

// full reports whether a lane that comes now has to wait.
func (c *crowding) full() bool {
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running >= c.bound
}

// waits returns how many lanes wait.
func (c *crowding) waits() int {
	if c == nil {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.waiting)
}
