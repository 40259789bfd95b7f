package lease

import "math"

// share fills in a grant or a renewal with the share that the demands give.
func (k *known) share(p *Plan) {
	v := &k.view
	s := k.scene(p.Now)
	p.Slot.Rate = k.rateParts(&s, v, p)
	rate := float64(p.Slot.Rate) / Parts
	wants := make([]wanted, len(k.stock.limits))
	room := 0.0
	p.scarce = s.saturated()
	for l := range wants {
		lv := k.level(l, p.Now)
		if p.scarce {
			wants[l] = s.scarce(&lv, rate)
		} else {
			wants[l] = s.plenty(&lv, rate)
		}
		room = max(room, wants[l].room)
		p.change = p.change || wants[l].far
	}
	p.Slot.Room = k.roomParts(room, wants, p.OldRoom, v.Room)
	for l := range wants {
		p.Draw[l] = k.drawn(p, v, l, wants[l].stock)
		p.brings = p.brings || p.Draw[l] > 0
	}
	old := float64(p.OldRate) / Parts
	p.change = p.change || math.Abs(rate-old) > 0.2*max(old, 0.01)
	p.brings = p.brings || p.Slot.Rate > p.OldRate && !p.scarce || p.Kind == Grant
	k.hint(p, &s)
}

// rateParts returns the parts of the rate that the lease is to have.
func (k *known) rateParts(s *scene, v *View, p *Plan) int {
	parts := int(math.Round(s.share() * Parts))
	if s.demand > 0 {
		parts = max(parts, 1)
	}
	return min(parts, p.OldRate+v.Rate)
}

// roomParts returns the parts of the room that the lease is to have, with room for the
// stock that it has or gets. A small change is left alone.
func (k *known) roomParts(room float64, wants []wanted, old, centre int) int {
	most := old + centre
	for _, p := range k.stock.limits {
		if k.policy.Max > 0 && k.policy.Max < p.Capacity {
			most = min(most, int(k.policy.Max*Parts/p.Capacity))
		}
	}
	least := 0
	for l, p := range k.stock.limits {
		stock := max(millitokens(wants[l].stock, p.Capacity), k.stock.kept[l])
		least = max(least, partsOf(stock, p.Capacity))
	}
	parts := min(max(int(math.Ceil(room*Parts)), least, 1), most)
	if d := parts - old; least <= old && old <= most && float64(max(d, -d)) < 0.05*float64(old) {
		return old
	}
	return parts
}

// drawn returns how much of a limit goes from the centre to the lease so that its stock is
// as wanted. Neither the centre nor the lease has more than its room afterwards, so
// nothing is lost. The lease draws only tokens that the centre has.
func (k *known) drawn(p *Plan, v *View, l int, stock float64) int64 {
	whole := k.stock.limits[l].Capacity
	tokens := v.tokens(l, p.Now)
	own := k.stock.cands[0].buckets[l].Tokens
	room := portion(whole, p.Slot.Room)
	want := millitokens(stock, whole)
	if tokens < 0 { // debt of the centre: the lease takes over its share
		want = max(own, 0) - portion(min(-tokens, whole), p.Slot.Rate)
	}
	draw := max(want, k.stock.kept[l], 0) - own // rule: kept tokens are not given back
	if draw < 0 && tokens >= 0 && p.Slot.Rate >= p.OldRate && -draw < max(want/5, 2*k.cost(l, p.Now)) {
		draw = 0
	}
	draw = max(draw, tokens-portion(whole, p.OldRoom+v.Room-p.Slot.Room)) // rule: room comes with its tokens
	return min(draw, max(tokens, 0), room-own)                            // rule: a lease draws at most the tokens that are there
}

// hint writes the hints of a slot.
func (k *known) hint(p *Plan, s *scene) {
	p.Slot.Demand = EncodeDemand(s.demand)
	least := 1.0
	for l, limit := range k.stock.limits {
		tokens := p.Draw[l] + k.stock.cands[0].buckets[l].Tokens
		least = min(least, float64(tokens)/float64(limit.Capacity))
	}
	p.Slot.Stock = EncodeStock(least)
}
