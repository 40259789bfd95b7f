package lane

import (
	"log/slog"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/lease"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// A lease under the own number that this process never wrote is one of a copy of its
// machine. Neither serves nor removes the lease of the other.
func TestALeaseOfACopyIsNotTheOwn(t *testing.T) {
	var h held
	for n := range uint16(12) {
		h.issue(&lease.Plan{Kind: lease.Renew, Slot: lease.Slot{Seq: 100 + 7*n}})
	}
	for name, tc := range map[string]struct {
		lease *schema.Lease
		want  bool
	}{
		"none":                        {nil, false},
		"the last one":                {&schema.Lease{Sequence: 177, Rate: 1, Room: 1}, false},
		"one of the last":             {&schema.Lease{Sequence: 128, Rate: 1}, false},
		"another one":                 {&schema.Lease{Sequence: 178, Rate: 1, Room: 1}, true},
		"room alone":                  {&schema.Lease{Sequence: 178, Room: 1}, true},
		"without parts, as of wishes": {&schema.Lease{Sequence: 178}, false},
	} {
		if got := h.copied(tc.lease); got != tc.want {
			t.Errorf("%s: copied %t, want %t", name, got, tc.want)
		}
	}
	h.showed(&schema.Lease{Sequence: 128, Rate: 1})
	for n := range uint16(20) {
		h.issue(&lease.Plan{Kind: lease.Renew, Slot: lease.Slot{Seq: 200 + 7*n}})
	}
	if h.copied(&schema.Lease{Sequence: 128, Rate: 1}) {
		t.Error("the own lease is a copy's after twenty lease writes that were refused")
	}
	if h.showed(nil); !h.copied(&schema.Lease{Sequence: 128, Rate: 1}) {
		t.Error("a lease that was gone is the own")
	}
	var fresh held
	if !fresh.copied(&schema.Lease{Rate: 1, Room: 1}) {
		t.Error("a lane that has written none holds a lease")
	}
}

// loneLane returns a lane of a process without a client, and that process.
func loneLane(now func() time.Time) (*host, *Lane) {
	s := &host{cfg: Config{Loop: awsdb.Goroutines{}, Now: now, Logger: slog.New(slog.DiscardHandler), Budget: time.Minute}}
	return s, newLane(s, new(set[*Lane]), &Site{}, 0, schema.Key{}, 0)
}

// The tokens that a write may have taken are counted as lost when another write takes it once more, or
// none does. Only a caller that is admitted all the same may have it.
func TestTakesInDoubtAreCounted(t *testing.T) {
	for name, tc := range map[string]struct {
		state      state
		keep, open bool
		lost       int64
	}{
		"awaited":                    {state: sent, open: true, lost: 1},
		"awaited, not applied":       {state: sent},
		"left":                       {state: sentLeft, open: true, lost: 1},
		"left, admitted":             {state: sentLeft, keep: true, open: true},
		"admitted late":              {state: sentOwed, open: true, lost: 1},
		"admitted late, not applied": {state: sentOwed},
		"denied late":                {state: sentDenied, open: true, lost: 1},
	} {
		t.Run(name, func(t *testing.T) {
			limits, err := limiter.NewLimits(limiter.PerDay("l", 100))
			if err != nil {
				t.Fatal(err)
			}
			s, l := loneLane(time.Now)
			r := &Request{Request: &plan.Request{Limits: limits, Admitted: true, Spends: []plan.Spend{{Limit: "l", Need: 5, Take: 5, Held: true}}}, Site: &l.site, state: tc.state, Keep: tc.keep}
			if tc.state.counts() {
				s.work.add()
			}
			l.closer.again(&batch{write: &plan.Write{}, actors: []*Request{r}}, tc.open)
			if got := s.Counters.Lost.Load(); got != tc.lost {
				t.Errorf("%d are counted as lost, want %d", got, tc.lost)
			}
		})
	}
}

// A write of which one copy is refused, and whose requests have an end meanwhile, may be applied by another copy. The
// tokens that it takes for them are counted as lost.
func TestTakesOfStraysAreCounted(t *testing.T) {
	limits, err := limiter.NewLimits(limiter.PerDay("l", 100))
	if err != nil {
		t.Fatal(err)
	}
	s, l := loneLane(time.Now)
	asks := func(admitted bool, take int64) *Request {
		r := &Request{Request: &plan.Request{Limits: limits, Admitted: admitted, Spends: []plan.Spend{{Limit: "l", Need: take, Take: take, Held: true}}}, Site: &l.site, state: waiting}
		r.lane.Store(l)
		return r
	}
	denied, waits, none := asks(true, 5), asks(true, 7), asks(false, 11)
	l.queue = []*Request{waits}
	l.finder.watch(&batch{write: &plan.Write{}, books: true, actors: []*Request{denied, waits, none}}, nil)
	denied.Admitted, denied.state, none.state = false, over, over
	l.finder.came(l.finder.strays[0])
	if got := s.Counters.LostTwice.Load(); got != 5 || len(l.queue) > 0 || waits.state != over {
		t.Errorf("%d millitokens are counted as lost, want 5; %d requests wait", got, len(l.queue))
	}
}

// A request strays, and its caller is decided late: the lane owes something in its place. Where another copy of the write
// was applied, nothing of that is booked again, and a late admission that the write denied is booked yet.
func TestWhatIsOwedForAStrayIsBookedOnce(t *testing.T) {
	limits, err := limiter.NewLimits(limiter.PerDay("l", 100))
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		spend       plan.Spend
		wrote, late bool  // the write took, and the caller was admitted
		owes, twice int64 // afterwards
	}{
		"a charge":                          {plan.Spend{Cost: 7, Usage: 7}, true, true, 0, 0},
		"a take, admitted":                  {plan.Spend{Need: 5, Take: 5, Cost: 7, Usage: 7}, true, true, 0, 0},
		"a take, denied":                    {plan.Spend{Need: 5, Take: 5, Cost: 7, Usage: 7}, true, false, 0, 5},
		"a take that the write denied":      {plan.Spend{Need: 5, Take: 5, Cost: 7, Usage: 7}, false, true, 5, 0},
		"a take that the write denied, too": {plan.Spend{Need: 5, Take: 5, Cost: 7, Usage: 7}, false, false, 0, 0},
	} {
		for _, entered := range []bool{false, true} {
			s, l := loneLane(time.Now)
			l.running = true
			tc.spend.Limit, tc.spend.Held = "l", true
			r := &Request{Request: &plan.Request{Limits: limits, Admitted: tc.wrote, Spends: []plan.Spend{tc.spend}}, Site: &l.site, state: waiting}
			r.lane.Store(l)
			l.finder.watch(&batch{write: &plan.Write{}, books: true, actors: []*Request{r}}, nil)
			told := *r.Request
			told.Admitted = tc.late
			l.closer.endLate(r, &told, tc.late)
			if entered {
				l.repay(l.owed[0], time.Now())
				l.owed = nil
			}
			l.finder.came(l.finder.strays[0])
			for _, o := range l.owed {
				l.repay(o, time.Now())
			}
			if owes, twice := l.estimator.owes("l"), s.Counters.LostTwice.Load(); owes != tc.owes || twice != tc.twice {
				t.Errorf("%s, in the queue %t: the lane owes %d, and %d are counted as lost, want %d and %d", name, entered, owes, twice, tc.owes, tc.twice)
			}
		}
	}
}
