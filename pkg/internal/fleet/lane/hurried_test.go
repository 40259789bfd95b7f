package lane

import (
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// far returns a lane with few tokens and long round trips, beside some other replicas, and the time.
func far(t *testing.T, tokens int64, others int) (*Lane, time.Time) {
	t.Helper()
	l := bench(t, tokens, 1000)
	now := l.host.cfg.Now()
	l.view.sent, l.pace = now, Pace{}
	l.pace.Reply(5 * time.Millisecond) // too few tokens come in it for the limit to count as dry
	l.peers.Observe(nil, 5, now)
	for i := range others {
		l.peers.Observe([]schema.WriteID{schema.NewWriteID(uint32(7+i), 1)}, 5, now) // #nosec G115 -- few
	}
	return l, now
}

// fill has the lane plan a write for its queue.
func (l *Lane) fill(now time.Time) *group {
	g := l.planner.newGroup(now)
	g.fill(l.queue)
	return g
}

// A request for which a lane's part is too small waits for the next write, if that can answer it in time.
func TestNoRequestIsPassedBeyondItsDeadline(t *testing.T) {
	for name, tt := range map[string]struct {
		patience time.Duration
		denied   bool
	}{"in time": {time.Second, false}, "too late": {12 * time.Millisecond, true}} {
		t.Run(name, func(t *testing.T) {
			l, now := far(t, 9, 2)
			l.wait(3)
			for _, r := range l.queue {
				r.Deadline = now.Add(tt.patience)
			}
			last := l.queue[2]
			g := l.fill(now)
			if len(g.actors) != 1 {
				t.Errorf("%d requests are written, want 1: a third of 9 tokens less the 5 of a round trip", len(g.actors))
			}
			if got := last.state == over; got != tt.denied || got && (last.Admitted || !last.ByShare) {
				t.Errorf("the last request is denied: %t, want %t", got, tt.denied)
			}
		})
	}
}

// A request that a write was refused for is written again beyond the lane's part, if there is time.
func TestNoRequestIsTriedBeyondItsDeadline(t *testing.T) {
	for name, tt := range map[string]struct {
		patience time.Duration
		asked    uint64 // when the state was asked for that is known; the request is of 1
		denied   bool
	}{"in time": {time.Second, 2, false}, "not tried yet": {8 * time.Millisecond, 1, false}, "too late": {8 * time.Millisecond, 2, true}} {
		t.Run(name, func(t *testing.T) {
			l, now := far(t, 2, 2)
			l.wait(1)
			r := l.queue[0]
			r.Deadline, r.asked, l.view.asked = now.Add(tt.patience), 1, tt.asked
			g := l.fill(now)
			if got := r.state == over; got != tt.denied || got != r.ByShare || len(g.actors) != map[bool]int{false: 1}[tt.denied] {
				t.Errorf("denied: %t, %d requests are written; want denied %t", got, len(g.actors), tt.denied)
			}
		})
	}
}

// A lane alone denies by its own write under way where its reply may come too late.
func TestALaneAloneDeniesInTime(t *testing.T) {
	for name, tt := range map[string]struct {
		patience time.Duration
		denied   bool
	}{"in time": {time.Second, false}, "too late": {8 * time.Millisecond, true}} {
		t.Run(name, func(t *testing.T) {
			l, now := far(t, 2, 0)
			l.fly()
			l.fly()
			l.view.head = bench(t, 0, 1000).view.state // what the two leave
			l.wait(1)
			r := l.queue[0]
			r.Deadline = now.Add(tt.patience)
			l.fill(now)
			if got := r.state == over; got != tt.denied || got && r.Admitted {
				t.Errorf("denied: %t, want %t", got, tt.denied)
			}
		})
	}
}

// A charge cannot be denied. It is written, whatever others leave of the limit.
func TestAChargeIsWritten(t *testing.T) {
	for _, trip := range []time.Duration{5 * time.Millisecond, 7 * time.Millisecond} { // of a limit that is short, and one that is nearly dry
		l, now := far(t, 2, 2)
		l.pace = Pace{}
		l.pace.Reply(trip)
		l.wait(1)
		r := l.queue[0]
		r.Spends[0].Cost, r.Spends[0].Need, r.Spends[0].Take = r.Spends[0].Take, 0, 0
		r.Deadline, r.asked, l.view.asked = now.Add(8*time.Millisecond), 1, 2
		if g := l.fill(now); len(g.actors) != 1 {
			t.Errorf("round trips of %v: %d requests are written, want the charge", trip, len(g.actors))
		}
	}
}

// A request that takes what is there takes it, also at its last try.
func TestAnAskTakesWhatIsThere(t *testing.T) {
	l, now := far(t, 10, 2)
	l.wait(1)
	r := l.queue[0]
	r.Spends[0].Need, r.Spends[0].Take, r.Spends[0].Ask = 0, 0, 50*limiter.Milli
	r.Deadline, r.asked, l.view.asked = now.Add(8*time.Millisecond), 1, 2
	if g := l.fill(now); len(g.actors) != 1 || r.Spends[0].Take != 10*limiter.Milli {
		t.Errorf("%d requests are written, for %d millitokens; want one, for all of 10 tokens", len(g.actors), r.Spends[0].Take)
	}
}
