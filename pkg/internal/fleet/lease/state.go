package lease

// State is the state of a lease, see the package comment.
type State uint8

// The states of a lease.
const (
	None      State = iota // nothing is held
	Granting               // the first grant is in flight; nothing is served
	Held                   // the lease is served
	Renewing               // the lease is served, and a write of it is in flight
	Returning              // the return is in flight; nothing is served
	Unsettled              // a return has no reply: an image will show the outcome; nothing is served
	Clearing               // a write of the own slot is in flight, and there is no lease
	Ended                  // the term is over; the slot may still be in the item
)

// String returns the name of the state.
func (s State) String() string {
	switch s {
	case None:
		return "none"
	case Granting:
		return "granting"
	case Held:
		return "held"
	case Renewing:
		return "renewing"
	case Returning:
		return "returning"
	case Unsettled:
		return "unsettled"
	case Clearing:
		return "clearing"
	case Ended:
		return "ended"
	}
	return "unknown"
}

// Serves reports whether requests are served from a lease in this state.
func (s State) Serves() bool { return s == Held || s == Renewing } // rule: a lease that is being returned is not served

// InFlight reports whether a lease write is in flight in this state.
func (s State) InFlight() bool {
	return s == Granting || s == Renewing || s == Returning || s == Clearing
}

// event is something that happens to a lease.
type event uint8

const (
	grantSent   event = iota
	renewalSent       // or a change of shares
	returnSent        // of all parts; or of a slot without a lease
	applied           // the write in flight, or one whose reply was lost: the slot holds its lease
	removed           // the slot has no parts: the return was applied, or another replica removed it
	refused           // the write in flight was not applied
	unanswered        // no reply of the write in flight will come
	expired           // the term is over, or the era of the clock changed
)

// after returns the state that an event leads to, and false where the event cannot happen.
func (s State) after(e event) (State, bool) {
	type step struct {
		State
		event
	}
	switch (step{s, e}) {
	case step{None, grantSent}, step{Ended, grantSent}:
		return Granting, true
	case step{Held, renewalSent}:
		return Renewing, true
	case step{Held, returnSent}:
		return Returning, true
	case step{None, returnSent}, step{Ended, returnSent}:
		return Clearing, true
	case step{None, applied}, step{Granting, applied}, step{Held, applied}, step{Renewing, applied}, step{Returning, applied}, step{Unsettled, applied}:
		return Held, true
	case step{Granting, refused}, step{Granting, unanswered}:
		return None, true
	case step{Renewing, refused}, step{Renewing, unanswered}, step{Returning, refused}, step{Unsettled, refused}:
		return Held, true
	case step{Returning, unanswered}:
		return Unsettled, true
	case step{Clearing, unanswered}, step{Clearing, refused}:
		return Ended, true
	}
	if e == removed {
		return None, true
	}
	return Ended, e == expired && s != None
}
