package lease

import (
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// Holder is the lease of a replica on one item: its tokens, the demand of the callers, and
// the writes that change it. Its methods are for one goroutine at a time. Times are Unix
// milliseconds, by one clock that never goes back; amounts are millitokens.
type Holder struct {
	Stock

	known  known
	duties duties
	life   life
}

// New returns a holder without a lease on an item whose limits have these parameters. last
// is the sequence number of the last lease write that the replica sent for the item, from
// Sequence. Where there was none it is a random number.
func New(limits []tokenbucket.Params, policy limiter.LeasePolicy, last uint16) *Holder {
	h := &Holder{Stock: Stock{limits: limits, kept: make([]int64, len(limits))}}
	h.known = known{stock: &h.Stock, view: unseen(limits), demand: newDemand(len(limits)), policy: policy, rtt: 5, need: make([]int64, len(limits))}
	h.duties = duties{stock: &h.Stock, known: &h.known, seq: last, low: make([]int64, len(limits))}
	h.life = life{stock: &h.Stock, known: &h.known, duties: &h.duties}
	h.forget()
	h.duties.pace.begin()
	return h
}

// Follow has the holder know the demand of the one before it, whose limits had the same names.
func (h *Holder) Follow(before *Holder) { h.known.demand = before.known.demand }

// Tune sets the policy of the rules, and the usual time from a send to its reply in ms.
func (h *Holder) Tune(policy limiter.LeasePolicy, rtt float64) {
	h.known.policy, h.known.rtt = policy, rtt
	if policy.None {
		h.duties.hurry()
	}
}

// Sequence returns the sequence number of the last lease write.
func (h *Holder) Sequence() uint16 { return h.duties.seq }

// State returns the state of the lease.
func (h *Holder) State() State { return h.duties.state }

// Recall has the lease returned, and no other one asked for. It is final: under new limits
// there is a new holder.
func (h *Holder) Recall() {
	h.duties.recall = true
	h.duties.hurry()
}

// Asked reports whether another replica asks for all leases at a time.
func (h *Holder) Asked(now int64) bool { return now < h.duties.asked && !h.known.view.Recall }

// Returns reports whether there is a lease to return, and no request waits for its tokens.
func (h *Holder) Returns() bool { return h.serves && !h.duties.keeps() }

// Renews reports whether the next lease write is to renew the lease: it is held, and not recalled.
func (h *Holder) Renews() bool { return h.serves && !h.duties.recalled() }

// Alive reports whether the lease is not over, by a reading of the clocks. It is tested
// after Spend: a pause of the process in between must not let it serve tokens that
// another replica reaped.
func (h *Holder) Alive(c Clock) bool { return h.life.alive(c) }

// Lapsed reports whether a lease ended without a return since the last call, and with how many
// millitokens, those of all limits together. If its slot is in the item, the next lease write
// counts them as spent.
func (h *Holder) Lapsed() (millitokens int64, lapsed bool) {
	millitokens, lapsed = h.lost, h.lapsed
	h.lost, h.lapsed = 0, false
	return millitokens, lapsed
}

// Wake returns when Ask is to be called next, if no request comes. It changes with each
// call of Ask, Seen, Failed and Settle.
func (h *Holder) Wake() int64 { return h.duties.wake() }

// Due reports whether Ask is to be called now. It is cheap: it is asked after each request.
func (h *Holder) Due(now int64) bool { return h.duties.due(now) }

// Ask returns the lease write that is due, if one is. It counts as sent: it must be sent at
// once, and once, and its end reported by Seen or Failed. The clocks are read before. draw
// is a random number of at least 0 and below 1.
func (h *Holder) Ask(now int64, c Clock, draw float64) (*Plan, bool) {
	h.cands.refill(now)
	h.life.alive(c)
	if s := h.State(); s.InFlight() || s == Unsettled || len(h.cands) > mostOpen { // rule: few lease writes are without an outcome
		return nil, false
	}
	v := &h.known.view
	p := Plan{Now: max(now, v.latest()), Create: !v.Exists, Pinned: v.Version, local: now, clock: c, draw: draw}
	h.cands.refill(p.Now)
	if !h.duties.plan(&p) {
		return nil, false
	}
	due := p // only a plan that is due is kept
	h.life.sent(&due)
	return &due, true
}

// Failed reports that a plan of Ask got no reply with an image of the item. Where it was
// perhaps applied, its candidate stays until an image shows the outcome. Otherwise it surely
// was not, and never will be: it was not sent.
func (h *Holder) Failed(now int64, p *Plan, perhaps bool) { h.life.fail(now, p, perhaps) }

// Seen takes note of the item as a reply to any request showed it. It settles all lease
// writes that have no outcome yet: each was planned on the version of an image before, and
// is applied to no other one. An image that is older than one seen before is ignored.
func (h *Holder) Seen(now int64, c Clock, v View) {
	if !v.Version.after(h.known.view.Version) { // rule: an older image tells nothing
		return
	}
	h.known.view, h.known.seen, h.known.reckoned = v, now, 0
	h.duties.pull, h.duties.asked = false, v.recalled(now)
	clear(h.known.need)
	h.cands.refill(now) // rule: refill before the reply is at the old rate
	h.life.alive(c)
	h.life.settle(now, c)
	if h.serves && h.duties.asked > 0 {
		h.duties.hurry()
	}
}
