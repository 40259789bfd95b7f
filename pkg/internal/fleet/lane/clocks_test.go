package lane

import (
	"log/slog"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/test/kit/clocktest"
)

// The clocks of a lease are the wall clock, the monotonic clock, and an era. The era
// changes with the correction of the clock and with the number of the process.
func TestClocksOfALease(t *testing.T) {
	machine := clocktest.Machine{Wall: 1_800_000_000_000_000_000, Mono: int64(time.Hour)}
	s := &host{cfg: Config{Clock: awsdb.NewClock(machine.Now, 0), Loop: awsdb.Goroutines{}}, began: machine.Now()}
	s.self.by, s.self.logger, s.self.first = awsdb.Goroutines{}, slog.New(slog.DiscardHandler), 7
	before := s.clocks(machine.Now())
	machine.Pass(time.Second)
	machine.Set(time.Minute) // it slept
	after := s.clocks(machine.Now())
	if mono, wall := after.Mono-before.Mono, after.Wall-before.Wall; mono != 1000 || wall != 61_000 {
		t.Errorf("%d ms passed on the monotonic clock, %d on the wall, want 1000 and 61000", mono, wall)
	}
	if after.Era != before.Era {
		t.Error("a second is another era")
	}
	s.self.rename(7)
	if s.clocks(machine.Now()).Era == after.Era {
		t.Error("another number of the process is no other era")
	}
	era := s.clocks(machine.Now()).Era
	for i := range 3 * awsdb.JumpReplies {
		at := machine.Now()
		if i > awsdb.JumpReplies { // from now on the clock is a minute behind
			at = at.Add(time.Minute)
		}
		s.cfg.Clock.Observe(machine.Now(), machine.Now(), at)
		machine.Pass(time.Second)
	}
	if s.clocks(machine.Now()).Era == era {
		t.Error("a jump of the correction is no other era")
	}
}
