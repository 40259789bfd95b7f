package lease

import (
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// known is the input of the shares: the tokens of the lease, the item as it was seen, the
// demand and the policy.
type known struct {
	stock  *Stock
	view   View  // of an item that does not exist, before one was seen
	seen   int64 // time of view
	demand Demand
	policy limiter.LeasePolicy
	rtt    float64 // ms
	began  int64   // of the lease

	need []int64 // millitokens that a request needs which waits for a renewal, by limit; 0 = none waits

	elsewhere float64 // tokens of all other holders, in parts of the capacity
	reckoned  int64   // time of elsewhere; 0 for a new view
}

// holders returns how many replicas have a slot, with this one.
func (k *known) holders() int { return len(k.view.Others) + 1 }

const (
	small = 16   // usual requests that a limit of which something is leased has room for
	spare = 1024 // usual requests that the centre has tokens for, where refill brings few
)

// worth reports whether the demand, the limits and the policy are worth a lease: frequent
// requests, for amounts that are small beside the capacity and the most that the policy lets a
// process hold. They are small beside the refill of a second, or beside the tokens of the
// centre, or others hold leases: plain writes would refuse theirs. The item must have a place
// for a slot.
func (k *known) worth(now int64) bool {
	full := !k.view.HasOwn && len(k.view.Others) >= MaxHolders
	if full || len(k.stock.limits) == 0 || !k.demand.frequent(now) {
		return false
	}
	requests := k.demand.requests(now)
	for l, p := range k.stock.limits {
		if _, ok := Scale(p, Parts, Parts); !ok || k.view.Exists && k.view.tokens(l, now) < 0 {
			return false // debt is made up for by the whole rate
		}
		mean := k.demand.rate(l, now) / requests
		slow := float64(p.Amount)/float64(p.Period)*1000 < small*mean
		if float64(p.Capacity) < small*mean || slow && len(k.view.Others) == 0 && float64(k.view.tokens(l, now)) < spare*mean {
			return false
		}
		if bound := k.policy.Max; bound > 0 && (float64(bound) < mean || bound < p.Capacity/Parts) {
			return false
		}
	}
	return true
}

// lasting is how many ms the tokens of a limit that never refills are to last at least. Where they do not,
// there is less than is asked for.
const lasting = 10_000

// refill returns the refill of a limit in millitokens a ms, for the shares. Where there is none, it is as
// much as would be left in lasting ms.
func (k *known) refill(l int, p tokenbucket.Params, now int64) float64 {
	if p.Amount > 0 {
		return float64(p.Amount) / float64(p.Period)
	}
	left := float64(k.view.tokens(l, now)) + float64(k.stock.cands[0].buckets[l].Tokens)
	return max(left, float64(p.Capacity)/Parts, 1) / lasting
}

// binding returns the demand as a part of the rate, of the limit that is short first.
func (k *known) binding(now int64) float64 {
	most := 0.0
	for l, p := range k.stock.limits {
		most = max(most, k.demand.rate(l, now)/k.refill(l, p, now))
	}
	return most
}

// cost returns the millitokens of a limit that one request usually takes.
func (k *known) cost(l int, now int64) int64 {
	requests := k.demand.requests(now)
	if requests <= 0 {
		return tokenbucket.Milli
	}
	return millitokens(k.demand.rate(l, now)/requests, k.stock.limits[l].Capacity)
}

// scene returns the input of the share.
func (k *known) scene(now int64) scene {
	v := &k.view
	s := scene{
		centreRate: float64(v.Rate) / Parts, centreRoom: float64(v.Room) / Parts,
		age: -1, demand: k.binding(now), requests: k.demand.requests(now), rtt: k.rtt,
		span:   float64(k.policy.For.Milliseconds()),
		others: make([]other, 0, len(v.Others)),
	}
	if v.HasOwn {
		s.rate, s.room = float64(v.Own.Rate)/Parts, float64(v.Own.Room)/Parts
	}
	if k.stock.serves {
		s.age = float64(now - k.began)
	}
	s.full = v.full(now)
	s.waiting = max(v.Replicas-1-len(v.Others), 0)
	for i := range v.Others {
		s.others = append(s.others, k.other(&v.Others[i], now))
	}
	return s
}

// other reads the hints of a slot. The stock is brought up to the time by the rate and
// the demand of its holder. It is that of the limit that refills in the shortest time.
func (k *known) other(o *Slot, now int64) other {
	out := other{rate: float64(o.Rate) / Parts, room: float64(o.Room) / Parts}
	if o.Demand < Wish {
		out.demand = DecodeDemand(o.Demand)
	}
	fastest := 0.0
	for l, p := range k.stock.limits {
		fastest = max(fastest, k.refill(l, p, now)/float64(p.Capacity))
	}
	stock := DecodeStock(o.Stock)
	later := stock + (out.rate-out.demand)*fastest*float64(o.age(now))
	out.stock = max(0, min(later, max(stock, out.room)))
	return out
}

// others returns the tokens of all other holders by their hints, in parts of the capacity.
// It is reckoned anew after a while, and for a new view.
func (k *known) others(now int64) float64 {
	if now-k.reckoned < foldEvery {
		return k.elsewhere
	}
	k.elsewhere, k.reckoned = 0, now
	for i := range k.view.Others {
		o := k.other(&k.view.Others[i], now)
		k.elsewhere += o.stock
	}
	return k.elsewhere
}

// level returns the state of a limit.
func (k *known) level(l int, now int64) level {
	p := k.stock.limits[l]
	lv := level{
		whole: float64(p.Capacity), rate: k.refill(l, p, now), demand: k.demand.rate(l, now),
		centre: float64(k.view.tokens(l, now)), own: float64(k.stock.cands[0].buckets[l].Tokens),
	}
	if need := float64(k.need[l]); need > 0 { // as much for requests that follow, if it is a small part
		part := (lv.own + max(lv.centre, 0)) / float64(k.holders())
		lv.need = max(need, min(manyUsual*float64(k.cost(l, now)), part/4))
	}
	return lv
}
