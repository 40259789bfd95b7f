package awsdb

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	// DefaultClockTolerance is the greatest uncertainty of the corrected clock at which
	// buckets are refilled. A Date header has whole seconds, so that one reply leaves an
	// uncertainty of a second and its round trip.
	DefaultClockTolerance = 2 * time.Second

	// DefaultMaxClockOffset is how far the Date of a reply may be from this machine's clock. A call
	// whose time is further from that of AWS has no valid signature, so that DynamoDB refuses it:
	// such a date is that of a proxy, or of another endpoint.
	DefaultMaxClockOffset = 5 * time.Minute

	// dateStep is the unit of the Date header, which is rounded down.
	dateStep = time.Second
	// serverSkew is how far apart the clocks of DynamoDB's servers may be.
	serverSkew = 20 * time.Millisecond
	// driftOne bounds the drift of a clock: it gains or loses at most one in driftOne, so
	// that older replies say less.
	driftOne = 10_000
	// maxAhead is more than a clock can be wrong; a Date beyond it is none.
	maxAhead = 100 * 365 * 24 * time.Hour
	// JumpReplies is how many replies in a row must contradict the earlier ones, and
	// agree with each other, to be believed.
	JumpReplies = 3
	// correctionJump separates two changes of the correction. After a change by more
	// than this the machine's clock stood still or was set. After a change by less,
	// another reply made it more exact.
	correctionJump = time.Second
)

// Clock is this machine's clock, corrected by the Date headers of DynamoDB's
// replies as far as they prove it wrong, and no further. It runs by the monotonic
// clock from the moment it was made, so that it does not follow the machine's
// clock when that is set. A nil *Clock corrects nothing. It is safe for concurrent
// use, and may serve several clients and stores: create it with [NewClock] and set
// it in [ClientConfig] and in dynamo.Config.
//
// A reply says that between sending and receiving it, the server's clock showed a
// moment of the second in Date. So the server is ahead of this machine by
// a time within [Date − received, Date + 1 s − sent]. Many replies, at any phase of the
// second, leave little more than a round trip of that.
type Clock struct {
	read      func() time.Time
	start     time.Time
	tolerance time.Duration
	most      time.Duration // that a date may be off

	mu    sync.Mutex
	ahead span // of the server: the times that all replies allow
	known bool // there was a reply
	// Replies that contradict ahead: the times that they allow, and how many they are.
	jump    span
	jumping int
	// By how much the wall clock was set, or moved on in a sleep, between the start and the
	// message of the last reply. The machine may have slept before that reply came.
	set   time.Duration
	far   time.Duration // the error of the last reply's date, if it was off by too much; else 0
	jumps atomic.Uint64 // of the correction
	fars  atomic.Int64  // replies whose date was off by too much
}

// span is an interval of durations, as it was known some time after the clock's start.
type span struct {
	low, high time.Duration
	at        time.Duration
}

// NewClock returns a clock that reads time with now, nil = time.Now, and is trusted
// while it can be off by at most tolerance, 0 = DefaultClockTolerance.
func NewClock(now func() time.Time, tolerance time.Duration) *Clock {
	if now == nil {
		now = time.Now
	}
	if tolerance <= 0 {
		tolerance = DefaultClockTolerance
	}
	return &Clock{read: now, start: now(), tolerance: tolerance, most: DefaultMaxClockOffset}
}

// WithMaxOffset sets how far the Date of a reply may be from this machine's clock, 0 =
// DefaultMaxClockOffset, and returns the clock. It must be called before the clock is used.
func (c *Clock) WithMaxOffset(d time.Duration) *Clock {
	c.most = d
	if d <= 0 {
		c.most = DefaultMaxClockOffset
	}
	return c
}

// Now returns the time of this machine's clock, without a correction.
func (c *Clock) Now() time.Time { return c.read() }

// ClockState is the state of a [Clock], as operators see it.
type ClockState struct {
	// Offset is added to this machine's clock; 0 while no reply proves it wrong.
	Offset time.Duration
	// Uncertainty is how far off the corrected clock may still be, not below 0.
	Uncertainty time.Duration
	// Observed says that there was a reply. Before the first one Offset and Uncertainty are 0,
	// unless the machine slept or its time was set since the start.
	Observed bool
	// Trusted says that refills go by the clock, because its uncertainty is within the
	// tolerance, and its last date was near this machine's time.
	Trusted bool
	// Far is how many replies had a date that was further from this machine's clock than the
	// clock allows. They correct nothing.
	Far int64
}

// State returns the state now; that of a nil *Clock is trusted and has no offset.
func (c *Clock) State() ClockState {
	r := c.Reading()
	state := ClockState{Offset: r.Correction, Uncertainty: r.Uncertainty, Observed: r.Observed, Trusted: !r.Doubtful}
	if c != nil {
		state.Far = c.fars.Load()
	}
	return state
}

// Reading is the state of a [Clock] at a moment.
type Reading struct {
	Correction  time.Duration // to be added to the machine's clock
	Latest      time.Duration // correction to the latest time that it can be
	Uncertainty time.Duration
	Observed    bool
	Far         time.Duration // the error of the last date, where that was too much; else 0
	Doubtful    bool          // it may be off by more than the tolerance, or the last date was off by too much
}

// Reading returns the state of the clock now. Replies that contradict the earlier ones may
// be right or wrong: until that is settled, both are possible.
func (c *Clock) Reading() Reading {
	if c == nil {
		return Reading{}
	}
	now := c.read()
	since := now.Sub(c.start)
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.known {
		r := Reading{Observed: c.far != 0, Uncertainty: c.far.Abs(), Far: c.far, Doubtful: c.far != 0}
		if set := c.setBy(now).Abs(); set > c.tolerance {
			r.Uncertainty, r.Doubtful = max(r.Uncertainty, set), true
		}
		return r
	}
	possible := c.ahead.aged(since)
	// The two readings of the machine's clock parted since the last reply: it slept, or
	// its time was set. Until the next reply the server may be where it was, or as far on.
	set := c.setBy(now) - c.set
	possible.low, possible.high = possible.low+min(set, 0), possible.high+max(set, 0)
	if c.jumping > 0 {
		jump := c.jump.aged(since)
		possible.low, possible.high = min(possible.low, jump.low), max(possible.high, jump.high)
	}
	r := Reading{Correction: c.correction(), Latest: possible.high, Observed: true}
	r.Uncertainty = max(possible.high-r.Correction, r.Correction-possible.low)
	r.Uncertainty = max(r.Uncertainty, c.far.Abs())
	r.Far, r.Doubtful = c.far, r.Uncertainty > c.tolerance || c.far != 0
	return r
}

// Steady returns a reading of this machine's clock without the amount that the clock was
// set by since the start. A reading without a monotonic part is returned as it is.
func (c *Clock) Steady(t time.Time) time.Time {
	if c == nil {
		return t
	}
	return t.Round(0).Add(-c.setBy(t))
}

// setBy returns how much further the wall clock moved from the start to a moment than
// the monotonic clock: the amount that it was set by, and how long the machine slept.
func (c *Clock) setBy(t time.Time) time.Duration {
	return t.Round(0).Sub(c.start.Round(0)) - t.Sub(c.start)
}

// Correct returns the corrected time of a reading of this machine's clock.
func (c *Clock) Correct(t time.Time) time.Time {
	return c.Steady(t).Add(c.Correction())
}

// Correction returns the correction of the machine's clock that a [Reading] has; 0 for a nil clock.
func (c *Clock) Correction() time.Duration {
	if c == nil {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.known {
		return 0
	}
	return c.correction()
}

// Era returns how often the correction jumped; a nil clock never does.
func (c *Clock) Era() uint64 {
	if c == nil {
		return 0
	}
	return c.jumps.Load()
}

// correction is the least change that makes the clock possible; 0 while nothing
// proves it wrong.
func (c *Clock) correction() time.Duration {
	return min(max(0, c.ahead.low), c.ahead.high)
}

// Observe corrects the clock by one reply: when the request was sent, when the reply was
// received, both by this machine's clock, and the reply's Date.
func (c *Clock) Observe(sent, received, date time.Time) { c.observe(sent, received, date, dateStep) }

// ObserveExact is [Clock.Observe] for a reply that has the server's time in full.
func (c *Clock) ObserveExact(sent, received, at time.Time) { c.observe(sent, received, at, 0) }

// observe takes in a date that was rounded down to a step.
func (c *Clock) observe(sent, received, date time.Time, step time.Duration) {
	earliest, latest := sent.Sub(c.start), received.Sub(c.start)
	server := date.Sub(c.start.Round(0)) // by the readings of both clocks
	if latest < earliest || server.Abs() > maxAhead {
		return
	}
	seen := span{low: server - latest - serverSkew, high: server + step - earliest + serverSkew, at: latest}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.set = c.setBy(sent)
	c.far = c.offBy(date, received)
	if c.far != 0 {
		c.fars.Add(1)
		return
	}
	agreed, before := c.ahead.and(seen), c.correction()
	switch {
	case !c.known:
		c.ahead, c.known = seen, true
		return
	case !agreed.empty():
		c.ahead, c.jumping = agreed, 0
	default:
		c.contradicted(seen)
	}
	if (c.correction() - before).Abs() > correctionJump {
		c.jumps.Add(1)
	}
}

// offBy returns the difference of a date and this machine's clock, if that is too much; else 0. It
// is the lesser amount of the wall clock's and the monotonic one's: the wall clock may just have
// been set.
func (c *Clock) offBy(date, received time.Time) time.Duration {
	off, steady := date.Sub(received.Round(0)), date.Sub(c.Steady(received))
	if steady.Abs() < off.Abs() {
		off = steady
	}
	if off.Abs() <= c.most+dateStep {
		return 0
	}
	return off
}

// contradicted counts a reply that the earlier ones rule out: one of the two clocks was
// set or stood still, or one reply is wrong.
func (c *Clock) contradicted(seen span) {
	if agreed := c.jump.and(seen); c.jumping > 0 && !agreed.empty() {
		c.jump, c.jumping = agreed, c.jumping+1
	} else {
		c.jump, c.jumping = seen, 1
	}
	if c.jumping >= JumpReplies {
		c.ahead, c.jumping = c.jump, 0
	}
}

// aged returns the span as it is at another time: wider, by the drift since.
func (s span) aged(at time.Duration) span {
	drift := (at - s.at).Abs() / driftOne
	return span{low: s.low - drift, high: s.high + drift, at: at}
}

// and returns the times that both spans allow, at the later of their own times.
func (s span) and(o span) span {
	at := max(s.at, o.at)
	s, o = s.aged(at), o.aged(at)
	return span{low: max(s.low, o.low), high: min(s.high, o.high), at: at}
}

func (s span) empty() bool { return s.low > s.high }
