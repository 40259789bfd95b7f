package lane

// state is how far a request is on its way. The table of its transitions is in the package comment.
type state uint8

const (
	created    state = iota // by a caller; it is in no lane yet
	promised                // by the lane itself; it is in no lane yet
	waiting                 // in the queue, with a caller that waits
	sent                    // in a write, with a caller that waits
	sentLeft                // in a write, whose caller has left without a decision
	sentDenied              // in a write, and denied late
	sentOwed                // in a write, and owed
	owed                    // it is written until it is applied, or counted as lost
	over                    // it has an end, and belongs to its caller
)

// event is one step of a request.
type event uint8

const (
	entered      event = iota // it came into a lane, or into that of another shard
	written                   // a write for it is sent
	refused                   // that write was not applied, and the request needs another one
	abandoned                 // its caller has left without a decision
	admittedLate              // its caller was admitted by an estimate
	deniedLate                // its caller was denied by an estimate
	ended                     // it has an end
)

// after returns the state that an event leads to. ok is false where it cannot happen in this one.
func (s state) after(e event) (next state, ok bool) {
	if e == ended {
		return over, s != promised
	}
	switch s {
	case created, promised:
		return s.entered(), e == entered
	case waiting, owed:
		return s.queued(e)
	case sent:
		return s.late(e)
	case sentDenied, sentOwed:
		return owed, e == refused
	case sentLeft:
		return sentLeft, e == abandoned
	case over:
	}
	return over, false
}

// entered is the state of a request behind its entry.
func (s state) entered() state {
	if s.owes() {
		return owed
	}
	return waiting
}

// queued is after for a request in a queue.
func (s state) queued(e event) (next state, ok bool) {
	switch {
	case e == entered:
		return s, true
	case e == written && s == owed:
		return sentOwed, true
	}
	return sent, e == written
}

// late is after for a request in a write whose caller waits.
func (s state) late(e event) (next state, ok bool) {
	switch e {
	case refused:
		return waiting, true
	case abandoned:
		return sentLeft, true
	case admittedLate:
		return sentOwed, true
	case deniedLate:
		return sentDenied, true
	case entered, written, ended:
	}
	return over, false
}

// owes reports whether the lane writes the request though no caller waits.
func (s state) owes() bool {
	return s == promised || s == owed || s == sentOwed || s == sentDenied
}

// counts reports whether the request counts among those that are owed.
func (s state) counts() bool { return s != promised && s.owes() }

// inWrite reports whether the request is in a write under way.
func (s state) inWrite() bool {
	return s == sent || s == sentLeft || s == sentDenied || s == sentOwed
}

// awaited reports whether the caller waits.
func (s state) awaited() bool { return s == created || s == waiting || s == sent }

func (s state) String() string {
	return [...]string{"created", "promised", "waiting", "sent", "sentLeft", "sentDenied", "sentOwed", "owed", "over"}[s]
}

func (e event) String() string {
	return [...]string{"entered", "written", "refused", "abandoned", "admittedLate", "deniedLate", "ended"}[e]
}
