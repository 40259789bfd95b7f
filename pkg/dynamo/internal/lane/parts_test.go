package lane

import (
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/awsdb"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/plan"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// t0 is when the tests begin.
var t0 = time.UnixMilli(1_800_000_000_000)

func TestPace(t *testing.T) {
	for _, tc := range []struct {
		name              string
		flights, replicas int
		want              time.Duration // after the last write; 0 = at once
	}{
		{"alone, no write under way", 0, 1, 0},
		{"alone, a write under way", 1, 1, leastPace},
		{"of three, no write under way", 0, 3, 3 * paceEach},
		{"of three, a write under way", 2, 3, leastPace},
		{"of ten, a write under way", 1, 10, 10 * paceEach},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := pace{sent: t0}
			got, want := p.next(tc.flights, tc.replicas), t0.Add(tc.want)
			if tc.want == 0 {
				want = time.Time{}
			}
			if !got.Equal(want) {
				t.Errorf("the next write is at %v, want %v", got, want)
			}
			p.rest = t0.Add(time.Second)
			if got := p.next(tc.flights, tc.replicas); !got.Equal(p.rest) {
				t.Errorf("the next write is at %v, want after the rest, at %v", got, p.rest)
			}
		})
	}
}

func TestRoundTripsAreAveraged(t *testing.T) {
	var p pace
	if got := p.roundTrip(); got != firstTrip {
		t.Errorf("before the first reply: %v, want %v", got, firstTrip)
	}
	p.reply(3 * time.Millisecond)
	for range 100 {
		p.reply(9 * time.Millisecond)
	}
	if got := p.roundTrip(); got < 8*time.Millisecond || got > 9*time.Millisecond {
		t.Errorf("got %v, want nearly 9 ms", got)
	}
	p.reply(time.Hour)
	if got := p.roundTrip(); got > 9*time.Millisecond+mostTrip/tripWeight {
		t.Errorf("a lost reply makes it %v", got)
	}
}

func TestPeersAreThoseWhoseIdsChange(t *testing.T) {
	var p peers
	a, b, c := schema.NewWriteID(2, 1), schema.NewWriteID(3, 1), schema.NewWriteID(4, 1)
	p.observe([]schema.WriteID{a, b, ""}, 1, t0)
	if got, _ := p.count(t0); got != 0 {
		t.Errorf("%d peers by the first state, want 0: it does not tell when they wrote", got)
	}
	a = schema.NewWriteID(2, 2)
	p.observe([]schema.WriteID{a, b, ""}, 1, t0.Add(time.Second))
	p.observe([]schema.WriteID{a, b, c}, 1, t0.Add(2*time.Second))
	for _, step := range []struct {
		after time.Duration
		want  int
	}{{2 * time.Second, 2}, {3500 * time.Millisecond, 1}, {5 * time.Second, 0}} {
		if got, _ := p.count(t0.Add(step.after)); got != step.want {
			t.Errorf("after %v: %d peers, want %d", step.after, got, step.want)
		}
	}
}

// An id that changed while the lane did not look counts as a replica, and leaves no time to it:
// it may have written long ago.
func TestPeersOfLongAgoDoNotSlowALane(t *testing.T) {
	var p peers
	slots := func(n uint64) []schema.WriteID {
		return []schema.WriteID{schema.NewWriteID(2, n), schema.NewWriteID(3, n)}
	}
	p.observe(slots(1), 1, t0)
	p.observe(slots(2), 1, t0.Add(time.Second))
	for i, step := range []struct {
		at            time.Duration
		write         uint64
		count, active int
	}{
		{1500 * time.Millisecond, 2, 2, 2},
		{3500 * time.Millisecond, 2, 0, 0},
		{5500 * time.Millisecond, 3, 2, 0}, // at any time of the last 2 s
		{5600 * time.Millisecond, 3, 2, 0},
		{5700 * time.Millisecond, 4, 2, 2}, // within the last 100 ms
	} {
		p.observe(slots(step.write), 1, t0.Add(step.at))
		if count, active := p.count(t0.Add(step.at)); count != step.count || active != step.active {
			t.Errorf("look %d: %d replicas, %d of them active; want %d and %d", i, count, active, step.count, step.active)
		}
	}
}

func TestSilenceIsASecondWithoutAReply(t *testing.T) {
	var h health
	at := func(ms int) time.Time { return t0.Add(time.Duration(ms) * time.Millisecond) }
	h.sent(at(0))
	h.sent(at(500))
	if h.silent(at(999)) || !h.silent(at(1000)) {
		t.Error("it is not silent after exactly a second")
	}
	for _, want := range []bool{true, false} {
		if since, begins := h.begins(at(1001)); begins != want || !since.Equal(at(0)) {
			t.Errorf("a silence since %v begins is %t, want %t", since, begins, want)
		}
	}
	h.ended(at(1100), true) // the other message waits since now
	if h.silent(at(2000)) || !h.silent(at(2100)) {
		t.Error("a reply does not end the silence for a second")
	}
	h.ended(at(2200), false)
	h.sent(at(2300))
	if !h.silent(at(2300)) {
		t.Error("a message that ended without a reply ended the silence")
	}
	h.ended(at(2400), true)
	if h.silent(at(9000)) {
		t.Error("it is silent while no message is under way")
	}
}

func TestTallyIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var work tally
		work.wait() // nothing
		work.add()
		var g sync.WaitGroup
		over := false
		g.Go(func() { work.wait(); over = true })
		synctest.Wait()
		work.add() // while it is waited for
		work.done()
		synctest.Wait()
		if over {
			t.Error("the wait ended before the work")
		}
		work.done()
		g.Wait()
	})
}

func TestIdentityOfACopyIsDrawnAnew(t *testing.T) {
	d := &identity{by: awsdb.Goroutines{}, logger: slog.New(slog.DiscardHandler), first: 7}
	own := d.next()
	if own.Replica() != 7 {
		t.Fatalf("the id %x is of replica %d, want 7", own, own.Replica())
	}
	state := &schema.Bucket{}
	state.Slots[3][1] = own
	if got := d.slotOn(state); got != 3 {
		t.Errorf("slot %d, want 3: that of the last write", got)
	}
	d.unmask(state)
	if d.replica() != 7 {
		t.Error("an own id made it draw another number")
	}
	state.Booked[1] = schema.NewWriteID(7, 2<<saltBits) // a write that it has not come to yet
	d.unmask(state)
	if d.replica() == 7 {
		t.Error("another process writes under its number, and it keeps that")
	}
}

func TestSlotsAreSharedLast(t *testing.T) {
	d := &identity{by: awsdb.Goroutines{}, first: 9}
	var state schema.Bucket
	for i := range schema.SlotCount {
		if i != 5 {
			state.Slots[i][i%schema.ChannelCount] = schema.NewWriteID(uint32(100+i), 1) // #nosec G115 -- a few
		}
	}
	if got := d.slotOn(&state); got != 5 {
		t.Errorf("slot %d, want the free one, 5", got)
	}
}

func TestOneOfTwoLeavesASharedSlot(t *testing.T) {
	var state schema.Bucket
	state.Slots[1][0], state.Slots[1][2] = schema.NewWriteID(9, 1), schema.NewWriteID(17, 1)
	low := &identity{by: awsdb.Goroutines{}, first: 9}
	high := &identity{by: awsdb.Goroutines{}, first: 17}
	if got := low.slotOn(&state); got != 1 {
		t.Errorf("the replica with the lower number goes to slot %d, want 1, where it is", got)
	}
	if got := high.slotOn(&state); got != 2 {
		t.Errorf("the replica with the higher number goes to slot %d, want the free one, 2", got)
	}
	state.Slots[2][0] = schema.NewWriteID(17, 2)
	if got := high.slotOn(&state); got != 2 {
		t.Errorf("the replica with the higher number goes on to slot %d, want 2, which it has alone", got)
	}
	for i := range schema.SlotCount {
		if i != 1 {
			state.Slots[i][0] = schema.NewWriteID(uint32(100+i), 1) // #nosec G115 -- a few
		}
	}
	if got := high.slotOn(&state); got != 1 {
		t.Errorf("with no slot free it goes to slot %d, want 1, where it is", got)
	}
}

// asking returns a request for so many millitokens.
func asking(n int64) *Request {
	return &Request{Request: &plan.Request{Spends: []plan.Spend{{Limit: "l", Need: n, Take: n}}}}
}

func TestAShareIsTheLanesPart(t *testing.T) {
	params := tokenbucket.Params{Capacity: 100_000, Amount: 100_000, Period: 1000 * 1000}
	s := share{replicas: 3, trip: 5, limits: []portion{{limit: "l", there: 9000, most: 3000, params: params}}}
	for i, step := range []struct {
		wants  int64
		limit  string
		beyond bool
	}{
		{2000, "", false},
		{2000, "l", false}, // waits for the next write
		{1000, "", false},
		{5000, "l", true}, // 10 of 9 tokens are asked for
	} {
		r := asking(step.wants)
		limit, beyond := s.short(r)
		if limit != step.limit || beyond != step.beyond {
			t.Errorf("request %d for %d: short of %q, beyond %t; want %q, %t", i, step.wants, limit, beyond, step.limit, step.beyond)
		}
		if s.ask(r); limit == "" {
			s.take(r)
		}
	}
	var alone share
	if limit, _ := alone.short(asking(1 << 40)); limit != "" {
		t.Errorf("a lane alone is short of %q", limit)
	}
}

func TestTheFirstRequestHasEnough(t *testing.T) {
	params := tokenbucket.Params{Capacity: 100_000, Amount: 100_000, Period: 1000 * 1000}
	s := share{replicas: 3, trip: 5, limits: []portion{{limit: "l", there: 1500, most: 500, params: params}}}
	if limit, _ := s.short(asking(1000)); limit != "" {
		t.Errorf("the first request is short of %q", limit)
	}
}

func TestLoad(t *testing.T) {
	var o load
	o.observe(t0, 1, 0, 1000)
	o.observe(t0.Add(500*time.Millisecond), 1, 450, 1000) // within the window
	if o.busy {
		t.Error("busy before the end of the window")
	}
	o.observe(t0.Add(time.Second), 1, 800, 1000)
	if !o.busy {
		t.Error("80 % of the units are not busy")
	}
	o.observe(t0.Add(2*time.Second), 1, 1000, 1000)
	if o.busy || !o.quiet.Equal(t0.Add(time.Second)) {
		t.Errorf("20 %% of the units: busy %t, quiet since %v", o.busy, o.quiet)
	}
	o.observe(t0.Add(3*time.Second), 2, 0, 1000) // another item
	if !o.quiet.Equal(t0.Add(3 * time.Second)) {
		t.Errorf("quiet since %v, want since the item is known", o.quiet)
	}
}

func TestChargesStayWithoutTheirTakes(t *testing.T) {
	r := &plan.Request{Spends: []plan.Spend{{Limit: "a", Need: 5, Take: 5}, {Limit: "b", Need: 2, Take: 2, Cost: 3, Usage: 3}}}
	got := withoutTakes(r)
	if got == nil || len(got.Spends) != 1 || got.Spends[0] != (plan.Spend{Limit: "b", Cost: 3, Usage: 3}) {
		t.Errorf("got %+v, want the cost of b alone", got)
	}
	if got := withoutTakes(&plan.Request{Spends: r.Spends[:1]}); got != nil {
		t.Errorf("got %+v of a take alone", got)
	}
}

// The newest limits of the requests that wait count, with the greatest generation of them.
func TestNewestLimits(t *testing.T) {
	old, err := limiter.NewLimits(limiter.PerDay("l", 1))
	if err != nil {
		t.Fatal(err)
	}
	other, err := limiter.NewLimits(limiter.PerDay("l", 2))
	if err != nil {
		t.Fatal(err)
	}
	r := func(l *limiter.Limits, generation uint64) *Request {
		return &Request{Request: &plan.Request{Limits: l, Generation: generation}}
	}
	got, generation := newest([]*Request{r(old, 3), r(other, 4), r(old, 2), r(other, 6)})
	if got != other || generation != 6 {
		t.Errorf("got generation %d, want the other limits at 6", generation)
	}
}
