package dynamo

import (
	"net/http"
	"sync"
	"time"
)

const (
	// DefaultClockTolerance is how far off this machine's clock may be, for all that is
	// known, before refills stop. A Date header has whole seconds, so that one reply
	// leaves a second and its round trip.
	DefaultClockTolerance = 2 * time.Second

	// dateStep is what the Date header is rounded down to.
	dateStep = time.Second
	// serverSkew is how far apart the clocks of DynamoDB's servers may be.
	serverSkew = 20 * time.Millisecond
	// A clock gains or loses at most one in driftOne: what was known of it grows old.
	driftOne = 10_000
	// maxAhead is more than a clock can be wrong; a Date beyond it is none.
	maxAhead = 100 * 365 * 24 * time.Hour
	// jumpReplies is how many replies in a row must contradict what was known, and
	// agree with each other, to be believed.
	jumpReplies = 3
)

// clock is this machine's clock, corrected by the Date headers of DynamoDB's
// replies as far as they prove it wrong, and no further. It runs by the monotonic
// clock from the moment it was made, so that it does not follow the machine's
// clock when that is set. It is safe for concurrent use.
//
// A reply says that between sending and receiving it, the server's clock showed a
// moment of the second in Date. So what the server is ahead of this machine lies
// within [Date − received, Date + 1 s − sent]. Many replies, at any phase of the
// second, leave little more than a round trip of that.
type clock struct {
	read      func() time.Time
	start     time.Time
	tolerance time.Duration

	mu    sync.Mutex
	ahead span // of the server; what all replies agree on
	known bool // there was a reply
	// Replies that contradict ahead, what they agree on, and how many they are.
	jump    span
	jumping int
	last    time.Time // the latest that now returned
}

// span is an interval of durations, as it was known some time after the clock's start.
type span struct {
	low, high time.Duration
	at        time.Duration
}

// newClock returns a clock that reads time with read, time.Now outside of tests.
func newClock(read func() time.Time, tolerance time.Duration) *clock {
	return &clock{read: read, start: read(), tolerance: tolerance}
}

// now is the corrected time. It never goes back: a correction backwards makes it
// stand until the time has come.
func (c *clock) now() time.Time {
	t := c.correct(c.read())
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.After(c.last) {
		c.last = t
	}
	return c.last
}

// correct is the corrected time of a moment that this machine's clock showed. A
// moment without a monotonic reading is taken by what it shows.
func (c *clock) correct(t time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	shown := t.Round(0)
	set := shown.Sub(c.start.Round(0)) - t.Sub(c.start) // since the start
	return shown.Add(c.correction() - set)
}

// correction is the least change that makes the clock possible; 0 while nothing
// proves it wrong.
func (c *clock) correction() time.Duration {
	if !c.known {
		return 0
	}
	return min(max(0, c.ahead.low), c.ahead.high)
}

// uncertainty is how far off the corrected clock may still be; false when no reply
// has said anything yet, or the last ones contradict what was known.
func (c *clock) uncertainty() (time.Duration, bool) {
	since := c.read().Sub(c.start)
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.known || c.jumping > 0 {
		return 0, false
	}
	ahead, correction := c.ahead.aged(since), c.correction()
	return max(ahead.high-correction, correction-ahead.low), true
}

// trusted reports whether refills may go by this clock.
func (c *clock) trusted() bool {
	u, ok := c.uncertainty()
	return ok && u <= c.tolerance
}

// observe learns from a reply.
func (c *clock) observe(sent, received, date time.Time) {
	earliest, latest := sent.Sub(c.start), received.Sub(c.start)
	server := date.Sub(c.start.Round(0)) // by what both clocks show
	if latest < earliest || server.Abs() > maxAhead {
		return
	}
	seen := span{low: server - latest - serverSkew, high: server + dateStep - earliest + serverSkew, at: latest}
	c.mu.Lock()
	defer c.mu.Unlock()
	agreed := c.ahead.and(seen)
	switch {
	case !c.known:
		c.ahead, c.known = seen, true
	case !agreed.empty():
		c.ahead, c.jumping = agreed, 0
	default:
		c.contradicted(seen)
	}
}

// contradicted counts a reply that what was known makes impossible: one of the two
// clocks was set or stood still, or one reply is wrong.
func (c *clock) contradicted(seen span) {
	if agreed := c.jump.and(seen); c.jumping > 0 && !agreed.empty() {
		c.jump, c.jumping = agreed, c.jumping+1
	} else {
		c.jump, c.jumping = seen, 1
	}
	if c.jumping >= jumpReplies {
		c.ahead, c.jumping = c.jump, 0
	}
}

// aged is what is left of a span that was known at another time.
func (s span) aged(at time.Duration) span {
	drift := (at - s.at).Abs() / driftOne
	return span{low: s.low - drift, high: s.high + drift, at: at}
}

// and is what two spans agree on, at the later of their times.
func (s span) and(o span) span {
	at := max(s.at, o.at)
	s, o = s.aged(at), o.aged(at)
	return span{low: max(s.low, o.low), high: min(s.high, o.high), at: at}
}

func (s span) empty() bool { return s.low > s.high }

// datedTransport tells a clock of the Date of every reply. A reply without one, or
// with one that cannot be read, says nothing.
type datedTransport struct {
	next  http.RoundTripper
	clock *clock
}

// RoundTrip implements http.RoundTripper.
func (t datedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	sent := t.clock.read()
	response, err := t.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	received := t.clock.read()
	if date, err := http.ParseTime(response.Header.Get("Date")); err == nil {
		t.clock.observe(sent, received, date)
	}
	return response, nil
}
