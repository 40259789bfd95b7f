package awsdb

import (
	"sync"
	"sync/atomic"
	"time"
)

// Condition says whether DynamoDB answers calls.
type Condition uint8

// The conditions.
const (
	Available   Condition = iota
	Recovering            // it answers again, and few calls at a time are made
	Throttled             // it answers, for want of capacity, with throttles only
	Unavailable           // it does not answer, or refuses all calls
)

// String returns the condition as logs and metrics write it.
func (c Condition) String() string {
	switch c {
	case Available:
		return "available"
	case Recovering:
		return "recovering"
	case Throttled:
		return "throttled"
	case Unavailable:
		return "unavailable"
	default:
		return "unknown"
	}
}

// State says whether DynamoDB answers, and since when.
type State struct {
	Condition Condition
	// Since is when DynamoDB came to be available, or when the first call of the outage
	// failed; zero = available since the start.
	Since time.Time
	// Cause is the error of a call of the outage; nil while available.
	Cause error
}

// look returns the state.
func (b *breaker) look() State {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := State{Condition: Unavailable, Since: b.failing, Cause: b.cause}
	switch {
	case !b.open:
		return State{Since: b.closed}
	case b.answers:
		s.Condition = Recovering
	case b.busy:
		s.Condition = Throttled
	}
	return s
}

// failingSince returns when DynamoDB began to fail: the time of the first failed call since
// the last answer, or of the first of the outage. It is zero while calls are answered.
func (b *breaker) failingSince() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures == 0 && !b.open {
		return time.Time{}
	}
	return b.failing
}

// herald reports outages, each once when it begins and once when it is over.
type herald struct {
	tell    func(State) // nil = changes are not reported
	changed atomic.Bool // the breaker opened or closed

	mu   sync.Mutex
	told bool // of an outage that is not over
}

// announce reports a change. It holds no lock that a call needs.
func (h *herald) announce(now func() State) {
	if h.tell == nil || !h.changed.CompareAndSwap(true, false) {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if state := now(); (state.Condition != Available) != h.told {
		h.told = !h.told
		h.tell(state)
	}
}
