package lane

import (
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// t0 is when the tests begin.
var t0 = time.UnixMilli(1_800_000_000_000)

func TestSilenceIsASecondWithoutAReply(t *testing.T) {
	var h health
	at := func(ms int) time.Time { return t0.Add(time.Duration(ms) * time.Millisecond) }
	h.sent(at(0), 10*time.Second)
	h.sent(at(500), 10*time.Second)
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
	h.sent(at(2300), 10*time.Second)
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
