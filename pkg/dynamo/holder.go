package dynamo

import (
	"slices"
	"time"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

const (
	// leaseTerm is how long a lease is served after the sending of the write that granted
	// or renewed it. Nobody else frees it before it was seen unchanged for that time and
	// an eighth of it.
	leaseTerm = 5 * time.Second
	leaseEbb  = leaseTerm + leaseTerm/8

	// A lease is given back when it was not used for half of the time that it is for, and
	// for idleLease at least.
	idleLease = 100 * time.Millisecond

	// maxFlights is how many writes of which nobody knows whether they were applied a
	// lease may rest on; one more, and it is given up.
	maxFlights = 16
)

// holder is what a lane holds of its item on lease, and what it knows of the demand.
// It is guarded by the lock of the lane's shard; only the lane's goroutine changes more
// of it than rest, and what says that the lane is wanted.
type holder struct {
	text    string         // of the own slot; "" = nothing is held
	version schema.Version // of the limits that it is under
	view    *view          // the item as it was seen last
	stocks  []stock
	until   time.Time     // nothing is served from then on, by either of its readings
	era     uint64        // of the store when the write was sent that granted it; nothing is served in another
	half    time.Time     // of the term
	idle    time.Duration // how long it may be unused
	used    time.Time

	draft   *flight  // what the plan that is being made does
	flights []flight // what was sent, and perhaps applied

	policy limiter.LeasePolicy // of the request that came last
	ruled  bool                // there was one that has a policy
	demand demand
	clock  int64     // what time it is: the latest of all decisions, corrected; never goes back
	after  time.Time // nothing more is asked for before
	retry  time.Time // what failed is not tried again before
	recall bool      // it is to be given back, and nothing to be granted with that
	wanted bool      // the lane has to do something for it
	listed bool      // in the store's list
}

// stock is what is held of one limit.
type stock struct {
	limit    string
	quantity int64 // on the item
	rest     int64 // of it, not yet spent
	reported int64 // of it, what a write reports as spent, that may have been applied
	low      int64 // with less left, more is asked for
}

// flight is what a write does to the lease that it rests on.
type flight struct {
	step     *leaseStep
	sent     time.Time
	era      uint64         // of the store, then
	version  schema.Version // of the item's limits
	refilled int64          // the item's, which the write rests on
	returns  bool           // all that is left
	spent    []amount
}

// draw is what one spend wants of a lease.
type draw struct {
	limit                  string
	need, take, give, cost int64
}

// tick brings the holder's clock up to a caller's, corrected, and returns the time that
// it is decided at. Decisions from the lease and those of the lane are made by one clock,
// that what is refilled by the time of one of them is not counted on before. A clock that
// cannot be trusted moves nothing.
func (h *holder) tick(now int64, doubtful bool) int64 {
	if !doubtful {
		h.clock = max(h.clock, now)
	}
	h.clock = h.view.at(h.clock)
	return h.clock
}

// stock returns what is held of a limit, or nil.
func (h *holder) stock(limit string) *stock {
	for i := range h.stocks {
		if h.stocks[i].limit == limit {
			return &h.stocks[i]
		}
	}
	return nil
}

// returning reports whether what is left is, or may be, returned: the item's already.
func (h *holder) returning() bool {
	if h.draft != nil && h.draft.returns {
		return true
	}
	return slices.ContainsFunc(h.flights, func(f flight) bool { return f.returns })
}

// alive reports whether the lease may be served at a time, in an era of the store. Both
// readings of the clock count: the monotonic one stands still while a machine sleeps, and
// the one on the wall may be set back. When a whole machine is paused both stand still,
// and replies tell: then the era is another one.
func (h *holder) alive(now time.Time, era uint64) bool {
	return era == h.era && now.Before(h.until) && now.Round(0).Before(h.until.Round(0))
}

// serves reports whether requests under limits of a version are served from the
// lease, as long as it is alive.
func (h *holder) serves(v schema.Version) bool {
	return h.text != "" && !h.recall && !v.Newer(h.version) && !h.returning()
}

// covers reports whether the lease has what a spend wants: all that it needs and costs,
// and a place for what is left.
func (h *holder) covers(d draw) bool {
	if h.view.find(d.limit) == nil {
		return true // not limited by it
	}
	p := h.stock(d.limit)
	if p == nil {
		return d.need == 0 && d.give == 0 && d.cost == 0
	}
	left := p.rest + d.give - d.take - d.cost
	return p.rest+d.give >= d.need && left >= 0 && left <= p.quantity-p.reported
}

// spend takes from the lease what a spend wants, which it covers. What it gives, with
// undo, is put back.
func (h *holder) spend(d draw, undo bool) {
	p := h.stock(d.limit)
	switch {
	case p == nil:
	case undo:
		p.rest -= d.give - d.take - d.cost
	default:
		p.rest += d.give - d.take - d.cost
	}
}

// restOf returns what is left of a limit.
func (h *holder) restOf(limit string) int64 {
	if p := h.stock(limit); p != nil {
		return p.rest
	}
	return 0
}

// rests returns what is left of all limits.
func (h *holder) rests() []amount {
	rests := make([]amount, len(h.stocks))
	for i := range h.stocks {
		rests[i] = amount{h.stocks[i].limit, h.stocks[i].rest}
	}
	return rests
}

// low reports whether the lease has so little left, or is so old, that it should be
// renewed while it is in use.
func (h *holder) low(now time.Time) bool {
	if h.text == "" || now.Before(h.after) {
		return false
	}
	return !now.Before(h.half) || slices.ContainsFunc(h.stocks, func(p stock) bool { return p.rest < p.low })
}

// own returns what the lane reports of its lease, and returns if it returns all.
func (h *holder) own(returns bool) *ownLease {
	o := &ownLease{text: h.text}
	for i := range h.stocks {
		p := &h.stocks[i]
		if n := p.quantity - p.rest; n > 0 {
			o.spent = append(o.spent, amount{p.limit, n})
		}
		if returns && p.rest > 0 {
			o.back = append(o.back, amount{p.limit, p.rest})
		}
	}
	return o
}

// reckon brings up to date what writes that may have been applied have reported.
func (h *holder) reckon() {
	for i := range h.stocks {
		p := &h.stocks[i]
		p.reported = 0
		for j := range h.flights {
			p.reported = max(p.reported, amountOf(h.flights[j].spent, p.limit))
		}
		if h.draft != nil {
			p.reported = max(p.reported, amountOf(h.draft.spent, p.limit))
		}
	}
}

// prepare notes what the plan that is made next does to the lease.
func (h *holder) prepare(f *flight) {
	h.draft = f
	h.reckon()
}

// send notes that what was prepared is sent.
func (h *holder) send(step *leaseStep, now time.Time, era uint64) {
	if h.draft == nil {
		return
	}
	f := *h.draft
	f.step, f.sent, f.era = step, now, era
	h.flights = append(h.flights, f)
	h.prepare(nil)
}

// missed notes that a write was not applied, and never will be.
func (h *holder) missed(step *leaseStep) {
	h.flights = slices.DeleteFunc(h.flights, func(f flight) bool { return f.step == step })
	h.reckon()
}

// saw learns from the item, and returns the flight that it shows to have been applied,
// or nil. What rests on the slot having another text than it shows is no more: the
// slot's texts never come back. An item that does not have the lease has it no more.
func (h *holder) saw(v *view, replica string) *flight {
	if h.view = v; h.text != "" && v != nil && v.version.Hash != h.version.Hash {
		h.recall = true
	}
	var slot *holding
	if v != nil {
		slot = v.holding(replica)
	}
	text := ""
	if slot != nil {
		text = slot.text
	}
	if text == h.text {
		// No write moves rf back: what was sent before it moved can not be applied.
		h.flights = slices.DeleteFunc(h.flights, func(f flight) bool { return v != nil && f.refilled < v.refilled })
		h.reckon()
		return nil
	}
	var landed *flight
	if i := slices.IndexFunc(h.flights, func(f flight) bool { return f.step.held.text == text }); i >= 0 {
		f := h.flights[i]
		landed = &f
	}
	h.flights = nil
	if landed == nil || text == "" {
		h.end()
		return landed
	}
	h.land(landed, v)
	return landed
}

// end forgets the lease.
func (h *holder) end() { h.text, h.stocks, h.recall = "", nil, false }

// land takes up what a write has granted, and reported.
func (h *holder) land(f *flight, v *view) {
	stocks := make([]stock, len(f.step.held.amounts))
	for i, a := range f.step.held.amounts {
		p := &stocks[i]
		*p = stock{limit: a.limit, quantity: a.tokens, rest: amountOf(f.step.granted, a.limit)}
		if !f.returns {
			p.rest += h.restOf(a.limit)
		}
		p.rest = min(p.rest, p.quantity)
		p.low = p.rest / 8
	}
	if h.text == "" {
		h.used = f.sent
	}
	h.text, h.stocks = f.step.held.text, stocks
	h.until, h.half, h.era = f.sent.Add(leaseTerm), f.sent.Add(leaseTerm/2), f.era
	h.version = f.version
	h.recall = h.recall || v.version.Hash != h.version.Hash
}

// inDoubt reports whether nobody knows what became of a write.
func (h *holder) inDoubt() bool { return len(h.flights) > 0 }

// busy reports whether the lane must be kept, for what it holds or may hold.
func (h *holder) busy() bool { return h.text != "" || len(h.flights) > 0 }
