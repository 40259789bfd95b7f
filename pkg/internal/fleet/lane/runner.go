package lane

import (
	"errors"
	"runtime"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
)

// A lane decides under its lock, and changes nothing but itself. [Lanes.unlock] carries out the
// effects of its decisions: requests that it owes enter it, a goroutine steps it, a timer starts.

// unlock carries out the effects of the decisions of a lane, and unlocks it.
func (s *Lanes) unlock(l *Lane) {
	for l.usages.oweRests(); len(l.owed) > 0; l.usages.oweRests() {
		owed := l.owed
		l.owed = nil
		for _, r := range owed {
			l.repay(r, s.cfg.Now())
		}
	}
	if l.starts {
		l.starts = false
		s.run(l, false)
	}
	if l.rings {
		l.rings = false
		s.ring(l, l.timer)
	}
	l.mu.Unlock()
}

// run has a goroutine step a lane, which has a turn or asks for one.
func (s *Lanes) run(l *Lane, turn bool) {
	s.work.add()
	s.cfg.Loop.Start(func() {
		defer s.work.done()
		growStack()
		l.gather()
		s.pump(l, turn)
	})
}

// growStack gives a new goroutine the stack that a message needs. With the frames of a message on it, growth costs
// several times as much.
//
//go:noinline
func growStack() {
	var room [5 << 10]byte
	runtime.KeepAlive(&room)
}

// ring has a lane stepped at a time, unless that is at an earlier one.
func (s *Lanes) ring(l *Lane, at time.Time) {
	s.timers.add()
	s.cfg.Loop.Start(func() {
		defer s.timers.done()
		if s.cfg.Loop.Sleep(s.stopped, max(at.Sub(s.cfg.Now()), 0)) != nil {
			return
		}
		l.mu.Lock()
		due := l.timer.Equal(at)
		if due {
			l.timer = time.Time{}
		}
		l.mu.Unlock()
		if due { // else an earlier one took its place
			s.pump(l, false)
		}
	})
}

// gather lets goroutines run that are ready to, as long as they bring requests: of
// callers that were answered together most ask again at once, and go into one write
// instead of two. Nothing is waited for.
func (l *Lane) gather() {
	const most = 16
	for n, before := 0, -1; n < most; n++ {
		l.mu.Lock()
		now := len(l.queue)
		l.mu.Unlock()
		if now == before {
			return
		}
		before = now
		l.host.cfg.Loop.Yield()
	}
}

// pump steps a lane and sends its messages, until there is none to send or the lane has to wait for a turn.
func (s *Lanes) pump(l *Lane, turn bool) {
	for ; ; turn = false {
		l.mu.Lock()
		if !turn {
			var added bool
			if turn, added = l.crowd.enter(l); added { // run has it back once it has a turn, which counts as work
				s.work.add()
			}
		}
		m, left := l.step(s.cfg.Now(), turn)
		s.unlock(l)
		s.forward(l, left)
		if m != nil {
			s.carry(l, m)
		}
		if turn {
			s.leave(l.crowd)
		}
		if m == nil {
			return
		}
		l.gather()
	}
}

// leave ends a turn, and runs the lanes that have the next ones.
func (s *Lanes) leave(of *crowding) {
	of.leave()
	for {
		l, waits := of.next().(*Lane)
		if !waits {
			return
		}
		s.run(l, true)
		s.work.done()
	}
}

// carry sends a message of a lane, again where that is right, and has it concluded.
func (s *Lanes) carry(l *Lane, m message) {
	for {
		got, err := s.exchange(m, l.crowd)
		l.mu.Lock()
		again := m.conclude(got, err, s.cfg.Now())
		s.unlock(l)
		if !again {
			return
		}
		s.Counters.Resent.Add(1)
		tries := max(m.core().tries, 1)
		if b := m.carries(); b != nil && b.outcome != awaitsReply || !isAnswer(err) && !errors.Is(err, awsdb.ErrPaced) {
			tries = min(tries, unknownTries)
		}
		_ = awsdb.Pause(s.stopped, s.cfg.Loop, tries) // cut short when the lanes end
	}
}

// unknownTries bounds the pause before a write of unknown outcome, or a read without an answer, is sent
// again: to about 60 ms. While a table hangs they are the only calls to it, and others wait for their end.
const unknownTries = 5
