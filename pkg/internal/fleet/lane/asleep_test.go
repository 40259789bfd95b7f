package lane

import (
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/clocktest"
)

// sleeper is a lane that saw a full item before its machine slept.
type sleeper struct {
	*Lane

	t     *testing.T
	lanes *Lanes
	now   *time.Time
}

const sleeps = 30 * time.Minute

func newSleeper(t *testing.T) *sleeper {
	t.Helper()
	s, l, _, now := fresh(t)
	wall, mono := int64(testTime)*int64(time.Millisecond), int64(time.Hour)
	*now = clocktest.At(wall, mono)
	l.host.cfg.Clock = awsdb.NewClock(func() time.Time { return *now }, 0)
	l.host.cfg.Clock.ObserveExact(*now, *now, now.Round(0))
	seen := bench(t, 1000, 1000).view
	l.view.known, l.view.state, l.view.quick, l.view.head = true, seen.state, seen.quick, seen.head
	l.view.sent, l.view.at, l.view.now = *now, testTime, testTime
	*now = clocktest.At(wall+int64(sleeps), mono)
	return &sleeper{l, t, s, now}
}

// take sends a request for a token under limits of a generation.
func (s *sleeper) take(limits *limiter.Limits, generation uint64) {
	r, clock := ofTokens(limits, 1), s.host.cfg.Clock
	r.Site, r.Wait, r.Asks, r.Policy.None, r.Generation = &s.site, NewWait(1), true, true, generation
	r.At, r.By, r.Deadline = clock.Correct(*s.now).UnixMilli(), clock.Correction(), s.now.Add(time.Second)
	s.lanes.Send(r)
}

// reads has replies come until a message is no read any more. It returns how many there were, and the state that
// the message leaves.
func (s *sleeper) reads(comes func()) (n int, leaves *schema.Bucket) {
	s.t.Helper()
	for ; ; n++ {
		m, _ := s.step(*s.now, true)
		if w, ok := m.(*write); ok {
			return n, w.write.After()
		}
		r, ok := m.(*read)
		if !ok || n > 10*mostLooks {
			s.t.Fatalf("after %d reads: got the message %+v, want a read or a write", n, m)
		}
		comes()
		s.sender.arrived(r)
		s.sees(s.view.state, &r.copies, *s.now)
	}
}

// A machine that slept writes nothing before replies have corrected its clock. The limit has been full since. So a
// take as of a time before the sleep would leave it full, and other limits would have refilled it in the sleep.
func TestNothingIsWrittenAsOfBeforeASleep(t *testing.T) {
	newer, err := limiter.NewLimits(limiter.Custom("l", 2000, 1000, time.Second))
	if err != nil {
		t.Fatal(err)
	}
	for name, asks := range map[string]func(s *sleeper){
		"a take":                             func(s *sleeper) { s.take(s.view.state.Limits, 1) },
		"a take under newer limits":          func(s *sleeper) { s.take(newer, 2) },
		"newer limits, and no call any more": func(s *sleeper) { s.newer = wanted{newer, 2} },
		"an owed take":                       func(s *sleeper) { s.owes() },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSleeper(t)
			asks(s)
			n, leaves := s.reads(func() { s.host.cfg.Clock.ObserveExact(*s.now, *s.now, s.now.Round(0)) })
			if n != awsdb.JumpReplies {
				t.Errorf("%d reads, want %d", n, awsdb.JumpReplies)
			}
			const most = 100 * time.Millisecond // that the corrected clock is behind
			if off := s.now.Sub(time.UnixMilli(max(leaves.At, leaves.Taken))); off < 0 || off > most {
				t.Errorf("the item is written as of %v ago, want at most %v", off, most)
			}
		})
	}
}

// owes has the lane owe a take that was admitted late.
func (s *sleeper) owes() {
	s.take(s.view.state.Limits, 1)
	s.lanes.DecideLate(s.queue, func([]*plan.Request) bool { return true })
}

// Where replies do not correct the clock, the bucket gives the tokens that it had.
func TestABucketGivesItsTokensByAWrongClock(t *testing.T) {
	for name, tt := range map[string]struct {
		comes func(s *sleeper)
		reads int
	}{
		"replies without a date": {func(*sleeper) {}, mostLooks},
		"a date far off":         {func(s *sleeper) { s.host.cfg.Clock.Observe(*s.now, *s.now, s.now.Add(24*time.Hour)) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSleeper(t)
			s.take(s.view.state.Limits, 1)
			n, leaves := s.reads(func() { tt.comes(s) })
			if n != tt.reads || leaves.Taken != testTime {
				t.Errorf("written as of %d after %d reads, want as of %d after %d", leaves.Taken, n, testTime, tt.reads)
			}
		})
	}
}
