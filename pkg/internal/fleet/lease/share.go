package lease

import (
	"cmp"
	"math"
	"slices"
)

// The constants of the shares were tuned with the simulation of the tests. All parts are
// fractions here, demands are parts of the rate, and times are milliseconds.
const (
	reserve    = 0.03 // of the rate stays in the centre while there is enough
	headroom   = 1.15 // of a demand, while there is enough
	shortRoom  = 1.05 // the same while there is not
	mostShared = 0.99 // of the rate, while there is not enough
	firstRate  = 0.05 // most rate of a first grant
	settled    = 20   // age from which the demands of a lease are known
	scarceSpan = 250  // ms of demand that a stock is for, while there is not enough
	plentySpan = 500  // the same while there is
)

// other is another holder, by its slot.
type other struct {
	demand float64
	rate   float64
	room   float64
	stock  float64 // now, of the capacity
}

// scene is the input of a share: the centre, the own lease and the hints of the other
// holders.
type scene struct {
	centreRate, centreRoom float64
	rate, room             float64 // of the own lease
	age                    float64 // of the own lease; below 0: none is held
	demand                 float64 // own, of the limit that is short first
	requests               float64 // own, in a ms
	rtt                    float64
	span                   float64 // that a lease is to cover by the policy; 0 = by the demand
	others                 []other
	full                   bool // the centre has no room for refill
	waiting                int  // other replicas that use the item and have no lease yet
}

// total returns the demand of all holders.
func (s *scene) total() float64 {
	sum := s.demand
	for _, o := range s.others {
		sum += o.demand
	}
	return sum
}

// saturated reports whether there is less than all holders ask for.
func (s *scene) saturated() bool { return s.total()*1.02 > 1-reserve }

// share returns the rate that this holder is to have.
func (s *scene) share() float64 {
	short := s.saturated()
	k := s.fair(short)
	if k > s.rate {
		k = min(k, s.rate+s.grantable(short))
	}
	// A lease keeps its rate where the difference may be noise.
	if noise := 2.5 / math.Sqrt(max(s.requests, 1e-3)*demandMemory); math.Abs(k-s.rate) < max(0.15, noise)*s.rate {
		return s.rate
	}
	return max(k, 0)
}

// fair returns the rate by the demands alone.
func (s *scene) fair(short bool) float64 {
	if short {
		claims := make([]claim, 0, len(s.others))
		for _, o := range s.others {
			claims = append(claims, claim{shortRoom * o.demand, 1})
		}
		return maxMin(claim{shortRoom * s.demand, 1}, claims, mostShared)
	}
	want := headroom * s.demand
	return min(want*min(2, (1-reserve)/max(headroom*s.total(), 1e-9)), 1-reserve)
}

// grantable returns the most rate that one write takes from the centre.
func (s *scene) grantable(short bool) float64 {
	most := s.centreRate
	if !short {
		most = max(0, most-reserve)
	}
	switch {
	case s.age >= settled:
		return most
	case s.full: // the centre's rate brings nothing
		return most / 2
	default: // the first demand is a guess
		return min(most/2, firstRate)
	}
}

// claim is the demand of one holder, and its weight beside others.
type claim struct {
	demand float64
	weight float64 // above 0
}

// maxMin returns the weighted max-min fair share of a claim beside those of others, when
// all of them share at most total: each gets its demand, or as much for its weight as any
// other one gets.
func maxMin(own claim, others []claim, total float64) float64 {
	all := append(slices.Clone(others), own)
	slices.SortFunc(all, func(a, b claim) int { return cmp.Compare(a.demand/a.weight, b.demand/b.weight) })
	weights := 0.0
	for _, c := range all {
		weights += c.weight
	}
	for _, c := range all {
		level := total / weights // for a weight of 1
		if c.demand > level*c.weight {
			return min(own.demand, level*own.weight)
		}
		total -= c.demand
		weights -= c.weight
	}
	return own.demand
}

// level is the state of one limit, in millitokens.
type level struct {
	whole  float64 // capacity
	rate   float64 // refill in a ms
	centre float64 // tokens of the centre; below 0 is debt
	own    float64 // tokens of the lease
	demand float64 // own, in a ms
	need   float64 // of a request that waits, or of some more that follow; 0 = none waits
}

// wanted is the room and the stock that a lease is to have of a limit.
type wanted struct {
	room  float64 // of the capacity
	stock float64 // millitokens
	far   bool    // the stock was far from it
}

// plenty returns room and stock while there is enough for all: room as the rate, for half
// a second at most, and tokens as the room.
func (s *scene) plenty(l *level, k float64) wanted {
	b := min(max(k, s.centreRoom/4), max(l.demand*s.spanOf(plentySpan), l.whole/50)/l.whole, s.room+max(0, s.centreRoom-reserve/2))
	pool := max(l.centre, 0) + l.own
	stock := min(b*l.whole, pool*b/max(1e-9, s.centreRoom+s.room))
	if need := max(l.demand*3*s.rtt, l.need); stock < need { // the part that the rate does not bring // rule: a renewal brings the need of a request that waits
		stock = min(need, l.own+max(l.centre, 0)/s.holders())
	}
	return wanted{room: b, stock: stock}
}

// scarce returns room and stock while there is less than is asked for. The tokens of the
// centre and of all holders go to those whose rate is below their demand. Each other
// holder keeps enough until its next write.
func (s *scene) scarce(l *level, k float64) wanted {
	own := l.demand / l.rate
	short := max(0, own-k)
	all, stock := s.shortage(l)
	stock += max(l.centre, 0) + l.own
	var target float64
	if short >= 0.02*own {
		target = stock * short / (all + short)
		if l.centre > 0 && l.centre < l.whole/20 {
			target = max(target, l.own+l.centre/2)
		}
	} else {
		target = min(s.enough(l), l.own+max(l.centre, 0)/s.holders())
	}
	if s.age < 2*settled { // its need is not known yet
		target = max(target, min(max(l.centre, 0)/2, k*l.whole))
		target = min(target, stock/s.users())
	}
	span := s.spanOf(scarceSpan)
	most := s.room + max(s.centreRoom/2, min(s.centreRoom, 0.04))
	target = min(target, max(l.demand*span, min(l.own, l.demand*span*1.2)), most*l.whole*0.98)
	refill := l.rate * k * max(20, min(300, 0.3*l.whole/l.rate))
	b := min(most, (target*1.02+refill)/l.whole)
	target = min(target, b*l.whole)
	return wanted{room: b, stock: target, far: math.Abs(target-l.own) > max(0.3*target, l.demand*100)}
}

// enough is the stock of a holder whose rate covers its demand. A stock near it stays.
func (s *scene) enough(l *level) float64 {
	soon := s.soon(l.demand, l)
	if l.own > soon*0.3 && l.own < soon*1.5 {
		return l.own
	}
	return soon
}

// soon is the need of a demand, in millitokens a ms, until the next write, with its noise.
func (s *scene) soon(demand float64, l *level) float64 {
	cost := 1000.0
	if s.requests > 0 && l.demand > 0 {
		cost = l.demand / s.requests
	}
	return demand*(10+2*s.rtt) + 2*math.Sqrt(demand*200*cost)
}

// shortage returns the demand of the other holders beyond their rate, and the tokens that
// they have and do not need.
func (s *scene) shortage(l *level) (all, stock float64) {
	for _, o := range s.others {
		short := max(0, o.demand-o.rate)
		tokens := o.stock * l.whole
		if short < 0.02*o.demand {
			tokens = max(0, tokens-s.soon(o.demand*l.rate, l))
		}
		all += short
		stock += tokens
	}
	return all, stock
}

// users returns how many replicas use the item, this one included, and one more that is not
// known yet where there is no other one.
func (s *scene) users() float64 { return float64(max(1+len(s.others)+s.waiting, 2)) }

// spanOf returns the ms of demand that a stock is for.
func (s *scene) spanOf(usual float64) float64 {
	if s.span > 0 {
		return s.span
	}
	return usual
}

func (s *scene) holders() float64 { return float64(len(s.others) + 1) }
