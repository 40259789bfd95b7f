package lease

import (
	"math"

	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// Kind is the kind of a lease write.
type Kind uint8

// The kinds of lease writes.
const (
	Grant    Kind = iota // the first of a lease
	Renew                // of its term, with other parts or the same
	Return               // of all parts: the slot is removed
	WishBack             // as Return, and the slot stays without parts and asks all holders to return theirs
)

// Plan is a lease write. With db = Slot.Room − OldRoom, the centre gives Slot.Rate −
// OldRate parts of its rate and db parts of its room as of Now, and of each limit Draw
// millitokens; below zero it gets them. The plan is for the item at the version Pinned.
// The return of a lease in debt draws the debt, which may be more than the centre has.
type Plan struct {
	Kind    Kind
	Create  bool    // the item is believed not to exist
	Pinned  Version // of the item
	Now     int64   // time of the plan, not before any time that the item was refilled to
	OldRate int     // parts of the own slot in the item, 0 if there is none
	OldRoom int
	Slot    Slot    // to be written; not in a Return
	Draw    []int64 // by limit

	clock  Clock
	draw   float64
	brings bool
	change bool
	scarce bool
}

// planReturn plans the return of all parts and of the tokens, or of the debt. Without a
// lease there are none: those of the slot count as spent.
func (h *Holder) planReturn(p *Plan) bool {
	h.begin(p, Return, 0, 0)
	for l, b := range h.cands[0].buckets {
		p.Draw[l] = -b.Tokens
	}
	return true
}

// planWish plans the return of all parts, and the slot that asks for those of others.
func (h *Holder) planWish(p *Plan) bool {
	h.planReturn(p)
	p.Kind, p.Slot.Demand = WishBack, Wish
	return true
}

// begin sets the fields that all plans have.
func (h *Holder) begin(p *Plan, kind Kind, rate, room int) {
	p.Kind, p.Draw = kind, make([]int64, len(h.limits))
	if h.view.HasOwn {
		p.OldRate, p.OldRoom = h.view.Own.Rate, h.view.Own.Room
	}
	p.Slot = Slot{Seq: h.seq + 1, Rate: rate, Room: room, At: encodeAt(p.Now)}
}

// planShare plans a grant or a renewal with the share that the demands give.
func (h *Holder) planShare(p *Plan, kind Kind) bool {
	v := &h.view
	s := h.scene(v, p.Now)
	h.begin(p, kind, 0, 0)
	p.Slot.Rate = h.rateParts(&s, v, p)
	k := float64(p.Slot.Rate) / Parts
	wants := make([]wanted, len(h.limits))
	room := 0.0
	p.scarce = s.saturated()
	for l := range wants {
		lv := h.level(l, v, p.Now)
		if p.scarce {
			wants[l] = s.scarce(&lv, k)
		} else {
			wants[l] = s.plenty(&lv, k)
		}
		room = max(room, wants[l].room)
		p.change = p.change || wants[l].far
	}
	p.Slot.Room = h.roomParts(room, wants, p.OldRoom, v.Room)
	for l := range wants {
		p.Draw[l] = h.drawn(p, v, l, wants[l].stock)
		p.brings = p.brings || p.Draw[l] > 0
	}
	old := float64(p.OldRate) / Parts
	p.change = p.change || math.Abs(k-old) > 0.2*max(old, 0.01)
	p.brings = p.brings || p.Slot.Rate > p.OldRate && !p.scarce || kind == Grant
	h.hint(p, &s)
	return true
}

// rateParts returns the parts of the rate that the lease is to have.
func (h *Holder) rateParts(s *scene, v *View, p *Plan) int {
	parts := int(math.Round(s.share() * Parts))
	if s.demand > 0 {
		parts = max(parts, 1)
	}
	return min(parts, p.OldRate+v.Rate)
}

// roomParts returns the parts of the room that the lease is to have, with room for the
// stock that it has or gets. A small change is left alone.
func (h *Holder) roomParts(room float64, wants []wanted, old, centre int) int {
	most := old + centre
	for _, p := range h.limits {
		if h.policy.Max > 0 && h.policy.Max < p.Capacity {
			most = min(most, int(h.policy.Max*Parts/p.Capacity))
		}
	}
	least := 0
	for l, p := range h.limits {
		stock := max(millitokens(wants[l].stock, p.Capacity), h.kept[l])
		least = max(least, partsOf(stock, p.Capacity))
	}
	parts := min(max(int(math.Ceil(room*Parts)), least, 1), most)
	if d := parts - old; least <= old && old <= most && float64(max(d, -d)) < 0.05*float64(old) {
		return old
	}
	return parts
}

// drawn returns how much of a limit goes from the centre to the lease so that its stock is
// as wanted. Neither the centre nor the lease has more than its room afterwards, so that
// nothing is lost, and the lease draws only tokens that are there.
func (h *Holder) drawn(p *Plan, v *View, l int, stock float64) int64 {
	whole := h.limits[l].Capacity
	tokens := v.tokens(l, p.Now)
	own := h.cands[0].buckets[l].Tokens
	room := portion(whole, p.Slot.Room)
	want := millitokens(stock, whole)
	if tokens < 0 { // debt of the centre: the lease takes over its share
		want = max(own, 0) - portion(min(-tokens, whole), p.Slot.Rate)
	}
	draw := max(want, h.kept[l], 0) - own
	if draw < 0 && tokens >= 0 && p.Slot.Rate >= p.OldRate && -draw < max(want/5, 2*h.cost(l, p.Now)) {
		draw = 0
	}
	draw = max(draw, tokens-portion(whole, p.OldRoom+v.Room-p.Slot.Room))
	return min(draw, max(tokens, 0), room-own)
}

// cost returns the millitokens of a limit that one request usually takes.
func (h *Holder) cost(l int, now int64) int64 {
	requests := h.demand.requests(now)
	if requests <= 0 {
		return tokenbucket.Milli
	}
	return millitokens(h.demand.rate(l, now)/requests, h.limits[l].Capacity)
}

// hint writes the hints of a slot.
func (h *Holder) hint(p *Plan, s *scene) {
	p.Slot.Demand = EncodeDemand(s.demand)
	least := 1.0
	for l, limit := range h.limits {
		tokens := p.Draw[l] + h.cands[0].buckets[l].Tokens
		least = min(least, float64(tokens)/float64(limit.Capacity))
	}
	p.Slot.Stock = EncodeStock(least)
}

// scene returns the input of the share.
func (h *Holder) scene(v *View, now int64) scene {
	s := scene{
		centreRate: float64(v.Rate) / Parts, centreRoom: float64(v.Room) / Parts,
		age: -1, demand: h.binding(now), requests: h.demand.requests(now), rtt: h.rtt,
		span:   float64(h.policy.For.Milliseconds()),
		others: make([]other, 0, len(v.Others)),
	}
	if v.HasOwn {
		s.rate, s.room = float64(v.Own.Rate)/Parts, float64(v.Own.Room)/Parts
	}
	if h.serves {
		s.age = float64(now - h.began)
	}
	for i := range v.Others {
		s.others = append(s.others, h.other(&v.Others[i], now))
	}
	return s
}

// other reads the hints of a slot. The stock is brought up to the time, by the rate and
// the demand of its holder, for the limit that refills in the shortest time.
func (h *Holder) other(o *Slot, now int64) other {
	out := other{rate: float64(o.Rate) / Parts, room: float64(o.Room) / Parts}
	if o.Demand < Wish {
		out.demand = DecodeDemand(o.Demand)
	}
	fastest := 0.0
	for _, p := range h.limits {
		fastest = max(fastest, float64(p.Amount)/float64(p.Period)/float64(p.Capacity))
	}
	stock := DecodeStock(o.Stock)
	later := stock + (out.rate-out.demand)*fastest*float64(o.age(now))
	out.stock = max(0, min(later, max(stock, out.room)))
	return out
}

// level returns the state of a limit.
func (h *Holder) level(l int, v *View, now int64) level {
	p := h.limits[l]
	return level{
		whole: float64(p.Capacity), rate: float64(p.Amount) / float64(p.Period), demand: h.demand.rate(l, now),
		centre: float64(v.tokens(l, now)), own: float64(h.cands[0].buckets[l].Tokens),
	}
}
