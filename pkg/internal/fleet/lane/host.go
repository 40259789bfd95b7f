package lane

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/lease"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// maxOwed is how many owed requests a process keeps at most.
const maxOwed = 1 << 16

// host is the common state of the lanes of a process. It refers to no lane. It is safe for
// concurrent use.
type host struct {
	Counters Counters

	cfg      Config
	self     identity
	health   health
	crowding *crowding   // nil = any number of messages may be under way
	crowds   []*crowding // by part of the server; none = it has one part
	samples  *limiter.SampledLog
	halted   atomic.Bool                    // the clock cannot be trusted
	began    time.Time                      // of the monotonic clock of leases
	closing  atomic.Bool                    // nothing is leased any more
	heir     atomic.Pointer[func(*Request)] // gets owed requests as the lanes stop; nil = they are lost

	work    tally // messages, and requests that are owed
	timers  tally
	stopped context.Context //nolint:containedctx // of the lanes' own work: done when stop is called
	stop    context.CancelFunc
}

// Silent reports whether DynamoDB counts as down, because no message had a reply for a second.
func (s *host) Silent() bool { return s.silent(s.cfg.Now()) }

// Waiting returns how many lanes wait now to send a message, as enough are under way.
func (s *host) Waiting() int {
	n := s.crowding.waits()
	for _, c := range s.crowds {
		n += c.waits()
	}
	return n
}

// crowdOf returns the bound of the messages about an item.
func (s *host) crowdOf(k schema.Key) *crowding {
	if len(s.crowds) == 0 {
		return s.crowding
	}
	part, _ := schema.Home(k)
	return s.crowds[part] // rule: a part of the server that does not answer holds up no messages to the others
}

// silent is Silent at a time. A silence that begins is reported to the observer, without a
// lock.
func (s *host) silent(now time.Time) bool {
	if !s.health.silent(now) {
		return false
	}
	if since, begins := s.health.begins(now); begins && s.cfg.Silence != nil {
		s.timers.add()
		s.cfg.Loop.Start(func() {
			defer s.timers.done()
			s.cfg.Silence(since, errSilent)
		})
	}
	return true
}

// clocks reads the clocks that end a lease.
func (s *host) clocks(now time.Time) lease.Clock {
	return lease.Clock{
		Mono: now.Sub(s.began).Milliseconds(), Wall: now.Round(0).UnixMilli(), Era: s.cfg.Clock.Era() + s.self.renamed.Load(), // rule: a lease ends by the wall clock of the machine
	}
}

// warn logs an event that a reply or a request can cause: at most one line a second of
// each kind.
func (s *host) warn(kind, message string, attrs ...slog.Attr) {
	s.samples.Write(s.stopped, s.cfg.Now(), slog.LevelWarn, kind, message, attrs...)
}

// reading returns the last reading of the clock, and logs a change of trust.
func (s *host) reading() awsdb.Reading {
	if s.cfg.Clock == nil {
		return awsdb.Reading{}
	}
	r := s.cfg.Clock.Reading()
	if s.halted.Load() == r.Doubtful || !s.halted.CompareAndSwap(!r.Doubtful, r.Doubtful) {
		return r
	}
	if r.Doubtful {
		s.Counters.Halts.Add(1)
		s.cfg.Logger.Error("the clock cannot be trusted: nothing is refilled", slog.Duration("offset", r.Correction), slog.Duration("uncertainty", r.Uncertainty), slog.Duration("too_far", r.Far))
	} else {
		s.cfg.Logger.Info("the clock can be trusted: refills go on", slog.Duration("offset", r.Correction), slog.Duration("uncertainty", r.Uncertainty))
	}
	return r
}
