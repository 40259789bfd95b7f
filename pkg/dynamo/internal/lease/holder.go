package lease

import (
	"math"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// forever is a time that does not come.
const forever = math.MaxInt64

// Holder is the lease of a replica on one item: its tokens, the demand of the callers, and
// the writes that change it. Its methods are for one goroutine at a time. Times are Unix
// milliseconds, by one clock that never goes back; amounts are millitokens.
type Holder struct {
	Stock

	state  State
	demand Demand
	policy limiter.LeasePolicy
	rtt    float64 // ms

	view   View  // of an item that does not exist, before one was seen
	seen   int64 // time of view
	asked  int64 // until then the view asks for all leases
	recall bool  // all is to be returned
	wish   int64 // until then all holders are asked to return their leases

	pace   pace
	seq    uint16 // of the last slot that was sent
	began  int64  // of the lease
	scarce bool   // there was less than all holders asked for
	flight flight
	pull   bool // a request waits for more

	low   []int64 // by limit: with less in stock more is asked for
	lowAt int64   // time of low
}

// flight is the lease write in flight.
type flight struct {
	plan   Plan
	brings bool // tokens, or rate
	change bool // the shares, so that the next renewal is soon
	scarce bool
}

// New returns a holder without a lease on an item whose limits have these parameters. last
// is the sequence number of the last lease write that the replica sent for the item, as
// Sequence tells; a random number where there was none.
func New(limits []tokenbucket.Params, policy limiter.LeasePolicy, last uint16) *Holder {
	h := &Holder{
		Stock:  Stock{limits: limits, kept: make([]int64, len(limits))},
		demand: newDemand(len(limits)), policy: policy, rtt: 5, seq: last,
		low: make([]int64, len(limits)), view: unseen(limits),
	}
	h.clear()
	h.pace.begin()
	return h
}

// Tune sets the policy of the rules, and the usual time from a send to its reply in ms.
func (h *Holder) Tune(policy limiter.LeasePolicy, rtt float64) {
	h.policy, h.rtt = policy, rtt
	if policy.None {
		h.hurry()
	}
}

// Sequence returns the sequence number of the last lease write.
func (h *Holder) Sequence() uint16 { return h.seq }

// State returns the state of the lease.
func (h *Holder) State() State { return h.state }

// Recall has the lease returned, and no other one asked for. It is final: under new limits
// there is a new holder.
func (h *Holder) Recall() {
	h.recall, h.wish = true, 0
	h.hurry()
}

// Wish asks all holders of the item to return their leases, for some seconds from now on.
// This holder returns its own, and leaves a slot that says so.
func (h *Holder) Wish(now int64) {
	if h.recall {
		return
	}
	h.wish = now + wishLasts
	h.hurry()
}

// hurry makes the next lease write due, unless a return was just refused.
func (h *Holder) hurry() {
	if h.pace.tries == 0 {
		h.pace.next = 0
	}
}

// Alive reports whether the lease is not over, by a reading of the clocks. It is tested
// after Spend: a pause of the process in between must not let it serve tokens that
// another replica reaped.
func (h *Holder) Alive(c Clock) bool {
	if !h.serves {
		return false
	}
	if h.cands[0].alive(c) {
		return true
	}
	h.end()
	return false
}

// end ends the term of the lease.
func (h *Holder) end() {
	h.happen(expired)
	h.clear()
}

// happen brings the lease into the state that an event leads to. An event that cannot
// happen ends the lease: it costs tokens, and never gives any.
func (h *Holder) happen(e event) {
	next, ok := h.state.after(e)
	if !ok {
		next = Ended
	}
	h.state = next
	h.serves = next.Serves()
}

// returning reports whether the lease is to be returned, whatever the demand.
func (h *Holder) returning(now int64) bool {
	return h.recall || h.policy.None || now < h.wish || now < h.asked
}

// holders returns how many replicas have a slot, with this one.
func (h *Holder) holders() int { return len(h.view.Others) + 1 }

// worth reports whether the demand, the limits and the policy are worth a lease: frequent
// requests, for amounts that are small beside the capacity, the refill of a second and the
// most that the policy lets a process hold.
func (h *Holder) worth(now int64) bool {
	const small = 16
	if len(h.limits) == 0 || !h.demand.frequent(now) {
		return false
	}
	requests := h.demand.requests(now)
	for l, p := range h.limits {
		if _, ok := Scale(p, Parts, Parts); !ok {
			return false
		}
		mean := h.demand.rate(l, now) / requests
		if float64(p.Capacity) < small*mean || float64(p.Amount)/float64(p.Period)*1000 < small*mean {
			return false
		}
		if bound := h.policy.Max; bound > 0 && (float64(bound) < mean || bound < p.Capacity/Parts) {
			return false
		}
	}
	return true
}
