package awsdb

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ratelimit/ratelimit/test/kit/clocktest"
)

// skewed is a server with the true time and a machine whose clock is off.
type skewed struct {
	truth time.Time
	off   time.Duration // by which the machine's clock is ahead of the truth
}

func newSkewed(off time.Duration) *skewed {
	return &skewed{truth: time.Date(2026, 1, 2, 3, 4, 5, 600_000_000, time.UTC), off: off}
}

func (w *skewed) read() time.Time { return w.truth.Add(w.off) }

func uncertainty(c *Clock) (time.Duration, bool) { s := c.State(); return s.Uncertainty, s.Observed }

func (w *skewed) clock() *Clock {
	return NewClock(w.read, DefaultClockTolerance).WithMaxOffset(maxAhead)
}

// reply has the server answer: there is the way there, the way back, and the server's
// clock between.
func (w *skewed) reply(c *Clock, there, back time.Duration) {
	sent := w.read()
	w.truth = w.truth.Add(there)
	date := w.truth.Truncate(time.Second)
	w.truth = w.truth.Add(back)
	c.Observe(sent, w.read(), date)
}

// chat has the server answer n times, at phases of the second that are all different.
func (w *skewed) chat(c *Clock, n int) {
	for range n {
		w.reply(c, 3*time.Millisecond, 2*time.Millisecond)
		w.truth = w.truth.Add(137 * time.Millisecond)
	}
}

// wrong is how wrong a clock is.
func (w *skewed) wrong(c *Clock) time.Duration { return c.Correct(w.read()).Sub(w.truth) }

func TestClockCorrectsWhatIsProvenWrong(t *testing.T) {
	const rest = 100 * time.Millisecond // serverSkew both ways, the round trip, and phases that were missed
	for _, off := range []time.Duration{0, -time.Hour, time.Hour, 400 * time.Millisecond, -400 * time.Millisecond, 1500 * time.Millisecond, -30 * 365 * 24 * time.Hour} {
		t.Run(off.String(), func(t *testing.T) {
			w := newSkewed(off)
			c := w.clock()
			if got := w.wrong(c); got != off || c.State() != (ClockState{Trusted: true}) {
				t.Errorf("without a reply the clock is wrong by %v, %+v; want %v, and nothing known", got, c.State(), off)
			}
			w.chat(c, 1)
			if got := w.wrong(c).Abs(); got > time.Second+rest || !c.State().Trusted {
				t.Errorf("after one reply the clock is wrong by %v and trusted: %t; want at most %v, true", got, c.State().Trusted, time.Second+rest)
			}
			w.chat(c, 100)
			want := min(off.Abs(), rest)
			if got := w.wrong(c).Abs(); got > want {
				t.Errorf("after many replies the clock is wrong by %v, want at most %v", got, want)
			}
			if u, ok := uncertainty(c); !ok || u < w.wrong(c).Abs() || u > 2*rest {
				t.Errorf("uncertainty %v, %t; want from %v to %v", u, ok, w.wrong(c), 2*rest)
			}
		})
	}
}

// The header has whole seconds: a clock that is right is never touched.
func TestClockLeavesARightClockAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newSkewed(0)
		c := w.clock()
		for range rapid.IntRange(1, 50).Draw(t, "replies") {
			w.truth = w.truth.Add(drawTime(t, "pause"))
			w.reply(c, drawTime(t, "there"), drawTime(t, "back"))
			if got := w.wrong(c); got != 0 {
				t.Fatalf("a clock that is right was changed by %v", got)
			}
		}
	})
}

func drawTime(t *rapid.T, label string) time.Duration {
	return time.Duration(rapid.Int64Range(0, int64(3*time.Second)).Draw(t, label))
}

// A correction never overshoots, with replies of any latency. The remaining error has
// the sign of the first one, and its known bound is no less than it.
func TestClockNeverOvershoots(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		off := time.Duration(rapid.Int64Range(-int64(5*time.Second), int64(5*time.Second)).Draw(t, "off"))
		w := newSkewed(off)
		c := w.clock()
		for range rapid.IntRange(1, 50).Draw(t, "replies") {
			w.truth = w.truth.Add(drawTime(t, "pause"))
			w.reply(c, drawTime(t, "there"), drawTime(t, "back"))
			got := w.wrong(c)
			if got.Abs() > off.Abs() || got < 0 && off > 0 || got > 0 && off < 0 {
				t.Fatalf("wrong by %v, and corrected by %v", off, got)
			}
			if u, ok := uncertainty(c); !ok || u < got.Abs() {
				t.Fatalf("wrong by %v with an uncertainty of %v, %t", got, u, ok)
			}
		}
	})
}

// A machine that slept is found out by a few replies, and not trusted meanwhile.
func TestClockJumps(t *testing.T) {
	w := newSkewed(0)
	c := w.clock()
	w.chat(c, 50)
	w.off -= time.Hour // its clock stood still
	for i := 1; i < JumpReplies; i++ {
		w.chat(c, 1)
		if c.State().Trusted {
			t.Errorf("trusted after %d replies that contradict it", i)
		}
	}
	w.chat(c, 200)
	if got := w.wrong(c).Abs(); got > 100*time.Millisecond || !c.State().Trusted {
		t.Errorf("wrong by %v and trusted: %t, long after the jump", got, c.State().Trusted)
	}
}

// A correction that changes by more than a second is a jump, counted once. A better
// estimate of a clock that goes on as before is none, and neither is the date of a
// single reply.
func TestClockCountsJumps(t *testing.T) {
	for _, off := range []time.Duration{0, -time.Hour, 700 * time.Millisecond} {
		w := newSkewed(off)
		c := w.clock()
		w.chat(c, 100)
		if got := c.Era(); got != 0 {
			t.Errorf("off by %v from the start: %d jumps, want 0", off, got)
		}
		c.Observe(w.read(), w.read(), w.truth.Add(time.Hour))
		w.chat(c, 1)
		if got := c.Era(); got != 0 {
			t.Errorf("off by %v, and one wrong reply: %d jumps, want 0", off, got)
		}
		for i, jump := range []time.Duration{-time.Hour, 2500 * time.Millisecond, -500 * time.Millisecond} {
			w.off += jump
			w.chat(c, 100)
			if got, want := c.Era(), uint64(min(i+1, 2)); got != want { // #nosec G115 -- above 0
				t.Errorf("off by %v, then by %v more: %d jumps, want %d", off, jump, got, want)
			}
		}
	}
	if got := (*Clock)(nil).Era(); got != 0 {
		t.Errorf("no clock has %d jumps", got)
	}
}

// A machine that slept shows it on its wall clock, before any reply: until there is one
// the clock is not trusted. The same goes for one whose time is set, for which one reply
// is enough.
func TestClockSeesASleep(t *testing.T) {
	for _, test := range []struct {
		name    string
		set     time.Duration // of the wall clock
		sleeps  bool          // it is the truth that went on
		replies int           // until it is trusted again
	}{
		{"a sleep", time.Hour, true, JumpReplies},
		{"set ahead", time.Hour, false, 1},
		{"set back", -time.Hour, false, 1},
		{"set by a second", time.Second, false, 0},
	} {
		m := clocktest.Machine{Wall: 4_102_444_800_000e6, Mono: 1}
		truth := time.Duration(0) // by which the server is ahead
		c := NewClock(m.Now, 0)
		reply := func() {
			sent := m.Now()
			m.Pass(5 * time.Millisecond)
			c.Observe(sent, m.Now(), c.Steady(sent).Add(truth+3*time.Millisecond).Truncate(time.Second))
			m.Pass(137 * time.Millisecond)
		}
		for range 50 {
			reply()
		}
		if m.Set(test.set); test.sleeps {
			truth += test.set
		}
		for i := range test.replies {
			if state := c.State(); state.Trusted || state.Uncertainty < test.set.Abs() {
				t.Errorf("%s: after %d replies %+v, want it not to be trusted", test.name, i, state)
			}
			reply()
		}
		state := c.State()
		if wrong := state.Offset - truth; !state.Trusted || wrong.Abs() > time.Second {
			t.Errorf("%s: after %d replies wrong by %v, %+v", test.name, test.replies, wrong, state)
		}
	}
}

// A reply to a message from before a sleep does not show that the machine slept since. Neither does a start without
// a reply. The clock is not trusted until replies to later messages have come.
func TestClockSeesASleepBesideAMessage(t *testing.T) {
	for name, replies := range map[string]int{"before the first reply": 0, "with a message under way": 1} {
		m := clocktest.Machine{Wall: 4_102_444_800_000e6, Mono: 1}
		c := NewClock(m.Now, 0)
		sent := m.Now()
		m.Set(time.Hour) // it sleeps
		for range replies {
			c.Observe(sent, m.Now(), sent.Round(0))
		}
		if state := c.State(); state.Trusted || state.Uncertainty < time.Hour {
			t.Errorf("%s: %+v, want it not to be trusted", name, state)
		}
		for range JumpReplies {
			m.Pass(time.Millisecond)
			c.Observe(m.Now(), m.Now(), m.Now().Round(0))
		}
		if state := c.State(); !state.Trusted || (state.Offset-time.Hour).Abs() > time.Second {
			t.Errorf("%s, and then replies: %+v, want an offset of an hour", name, state)
		}
	}
}

// One server with a wrong clock is not believed.
func TestClockIgnoresOneWrongReply(t *testing.T) {
	w := newSkewed(0)
	c := w.clock()
	w.chat(c, 50)
	c.Observe(w.read(), w.read(), w.truth.Add(time.Hour))
	if got := w.wrong(c); got != 0 || c.State().Trusted {
		t.Errorf("one wrong reply: wrong by %v and trusted: %t; want 0, false", got, c.State().Trusted)
	}
	w.chat(c, 1)
	c.Observe(w.read(), w.read(), w.truth.Add(-time.Hour))
	w.chat(c, 1)
	if got := w.wrong(c); got != 0 || !c.State().Trusted {
		t.Errorf("after right replies: wrong by %v and trusted: %t; want 0, true", got, c.State().Trusted)
	}
}

// Replies that contradict each other by less than the tolerance do no harm.
func TestClockForgivesSmallContradictions(t *testing.T) {
	w := newSkewed(0)
	c := w.clock()
	w.chat(c, 50)
	for range 20 {
		c.Observe(w.read(), w.read(), w.truth.Add(900*time.Millisecond))
		if got := c.State(); !got.Trusted || got.Uncertainty < 500*time.Millisecond {
			t.Fatalf("after a reply that is off: %+v", got)
		}
		w.chat(c, 1)
	}
	if got := w.wrong(c); got != 0 {
		t.Errorf("wrong by %v", got)
	}
}

// Estimates grow old: without replies a clock is not trusted for ever, and one reply
// is enough to trust it again.
func TestClockGrowsOld(t *testing.T) {
	w := newSkewed(0)
	c := w.clock()
	w.chat(c, 50)
	w.truth = w.truth.Add(time.Hour)
	if !c.State().Trusted {
		t.Error("not trusted after an hour")
	}
	w.truth = w.truth.Add(24 * time.Hour)
	if c.State().Trusted {
		t.Error("trusted after a day without a reply")
	}
	w.chat(c, 1)
	if !c.State().Trusted {
		t.Error("not trusted after a reply")
	}
}

// A slow reply says so little that it is not enough.
func TestClockDistrustsSlowReplies(t *testing.T) {
	w := newSkewed(0)
	c := w.clock()
	w.reply(c, 2*time.Second, 2*time.Second)
	if u, ok := uncertainty(c); !ok || c.State().Trusted {
		t.Errorf("trusted with an uncertainty of %v, %t", u, ok)
	}
}

// A date that is too far from this machine's clock corrects nothing, and the clock is not trusted
// until one is near it. Both the wall clock and the monotonic one are compared: either may be
// right alone.
func TestFarDatesAreNoClock(t *testing.T) {
	for _, tt := range []struct {
		name       string
		off        time.Duration // by which dates are ahead of the machine as it was started
		set        time.Duration // the wall clock, before the reply
		most       time.Duration
		trusted    bool
		correction time.Duration
	}{
		{"near", 4 * time.Minute, 0, 0, true, 4*time.Minute - serverSkew},
		{"at the bound", DefaultMaxClockOffset, 0, 0, true, DefaultMaxClockOffset - serverSkew},
		{"beyond it", DefaultMaxClockOffset + 3*time.Second, 0, 0, false, 0},
		{"behind", -time.Hour, 0, 0, false, 0},
		{"by a wide bound", time.Hour, 0, 2 * time.Hour, true, time.Hour - serverSkew},
		{"the wall clock was put right", time.Hour, time.Hour, 0, true, time.Hour - serverSkew},
		{"the wall clock was put wrong", 0, time.Hour, 0, true, 0},
		{"both are wrong", time.Hour, -time.Hour, 0, false, 0},
	} {
		m := clocktest.Machine{Wall: 4_102_444_800_000e6, Mono: 1}
		c := NewClock(m.Now, 0).WithMaxOffset(tt.most)
		start := m.Now().Round(0)
		m.Set(tt.set)
		c.Observe(m.Now(), m.Now(), start.Add(tt.off))
		far := map[bool]int64{false: 1}[tt.trusted]
		if got := c.State(); got.Trusted != tt.trusted || got.Offset != tt.correction || got.Far != far || !got.Observed {
			t.Errorf("%s: %+v, want trusted %t, and a correction of %v", tt.name, got, tt.trusted, tt.correction)
		}
		if got := c.Reading(); got.Doubtful == tt.trusted || (got.Far != 0) == tt.trusted {
			t.Errorf("%s: %+v", tt.name, got)
		}
		m.Set(-tt.set)
		c.Observe(m.Now(), m.Now(), start)
		if got := c.State(); !tt.trusted && (!got.Trusted || got.Offset != 0) {
			t.Errorf("%s, and then a right date: %+v", tt.name, got)
		}
	}
}

// doing answers requests.
type doing func(*http.Request) (*http.Response, error)

func (f doing) Do(r *http.Request) (*http.Response, error) { return f(r) }

func TestDatedClient(t *testing.T) {
	for _, tt := range []struct {
		date     string
		observed bool
	}{
		{"", false}, {"yesterday", false}, {"Mon, 01 Jan 0001 00:00:00 GMT", false}, {"Fri, 02 Jan 2026 03:04:05 GMT", true},
	} {
		w := newSkewed(0)
		c := w.clock()
		client := datedClient{clock: c, next: doing(func(*http.Request) (*http.Response, error) {
			w.truth = w.truth.Add(5 * time.Millisecond)
			response := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("body"))}
			if tt.date != "" {
				response.Header.Set("Date", tt.date)
			}
			return response, nil
		})}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1/", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		if err != nil || string(body) != "body" || response.Body.Close() != nil {
			t.Errorf("the reply is %q, %v", body, err)
		}
		if got := c.State(); got.Observed != tt.observed || !got.Trusted || got.Offset != 0 {
			t.Errorf("Date %q: %+v, want observed: %t", tt.date, got, tt.observed)
		}
	}
}

// Times that tests and tools make up are taken as they are.
func TestClockTakesAnyTime(t *testing.T) {
	c := NewClock(time.Now, DefaultClockTolerance)
	for _, want := range []time.Time{{}, time.Unix(0, 0), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)} {
		if got := c.Correct(want); !got.Equal(want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}
