package dynamo

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// shortfall is how much a limit can lack of its capacity, for all that callers were told
// and all that is counted as lost. It is the other side of a tally: what the items lack
// must be no more, so that nothing is lost in silence, charged twice or not given back.
//
// A take counts from its answer on, and a refund by what it is worth at least, whenever
// it was applied in its call. So no choice of moments could make what is found right.
// What may have been applied, for all that is known, is open: it counts besides.
type shortfall struct {
	limit   string
	params  tokenbucket.Params
	rate    int64 // scaled, in a tick
	at      int64 // tick
	most    int64 // scaled
	open    int64 // millitokens: may be taken, or be taken yet
	floor   int64 // scaled: spent of leases and not reported, which makes no room for refill
	unheld  int64 // millitokens of leases that no process knows
	refunds []*openRefund
	later   []delayed
	gifted  bool // something was given back, which may lie above the capacity until the next take
	known   bool // it goes by the limits that the item is under
}

// openRefund is a refund under way.
type openRefund struct{ n, worth int64 } // scaled

// delayed is what may have been taken, and may be taken until a moment.
type delayed struct{ until, n int64 }

// longestMessage is how long a message is under way at most.
const longestMessage = int64(30 * time.Second)

// advance lets time go by.
func (y *shortfall) advance(now int64) {
	tick := now / tallyTick
	y.most = max(y.most-(tick-y.at)*y.rate, y.floor)
	y.at = tick
	for _, r := range y.refunds {
		r.worth = min(r.worth, max(y.most-y.floor, 0))
	}
	y.later = slices.DeleteFunc(y.later, func(d delayed) bool {
		if d.until > now {
			return false
		}
		y.open -= d.n
		y.most += d.n * tallyScale
		return true
	})
}

// refund takes down that a refund begins.
func (y *shortfall) refund(n int64) *openRefund {
	r := &openRefund{n: n * tallyScale, worth: min(n*tallyScale, max(y.most-y.floor, 0))}
	y.refunds = append(y.refunds, r)
	return r
}

// refunded takes down that a refund is over, and was applied.
func (y *shortfall) refunded(r *openRefund, applied bool) {
	y.refunds = slices.DeleteFunc(y.refunds, func(other *openRefund) bool { return other == r })
	if !applied {
		return
	}
	y.most -= r.worth
	for _, other := range y.refunds {
		other.worth = max(other.worth-r.worth, 0)
	}
}

// mayTake has n millitokens be taken at any time, or not.
func (y *shortfall) mayTake(now, n int64) {
	if n > 0 {
		y.open += n
		y.later = append(y.later, delayed{now + longestMessage, n})
	}
}

// adopt goes on from what the limit lacks: it is another one, or in several shards.
func (y *shortfall) adopt(p tokenbucket.Params, lacks int64) {
	y.known, y.params = true, p
	y.rate = p.Amount * (int64(time.Minute/time.Millisecond) / p.Period)
	y.most = max(lacks*tallyScale, y.floor)
	for _, r := range y.refunds {
		r.worth = 0
	}
}

// tolerance is what is rounded: a millitoken, and what is refilled in the millisecond that
// times are rounded to. Scaled.
func (y *shortfall) tolerance() int64 {
	return tallyScale + y.rate*int64(time.Millisecond)/tallyTick
}

// openShare is the part of a call that a shortfall knows of.
type openShare struct {
	limit  *shortfall
	took   int64 // millitokens, if the call is admitted
	booked int64 // charged
	refund *openRefund
}

// undone is what was taken for a caller who was not admitted, on its way back.
type undone struct {
	process *process
	limit   *shortfall
	n       int64
	of      *simLimit // of a call without an answer: its tallies are told when it is over
}

// over takes down that nothing is given back any more.
func (u *undone) over() {
	u.limit.open -= u.n
	if u.of != nil {
		u.of.admitted.gave(u.n)
		u.of.spent.gave(u.n)
	}
}

// beginShares takes down what a call may do.
func (f *fleet) beginShares(c *fleetCall) {
	for i := range c.ops {
		b := f.bucket(c.ops[i].Bucket)
		b.observe()
		for j := range c.ops[i].Spends {
			sp := &c.ops[i].Spends[j]
			share := openShare{limit: b.limit(sp.Limit).lacks, took: sp.Take, booked: max(sp.Charge-sp.Refund, 0)}
			share.limit.open += share.took + share.booked
			if n := sp.Refund - sp.Charge; n > 0 {
				share.refund = share.limit.refund(n)
			}
			c.shares = append(c.shares, share)
		}
	}
	f.calls = append(f.calls, c)
}

// endShares takes down what a call was told. told says whether it was: its process may have
// ended before.
func (f *fleet) endShares(c *fleetCall, told, admitted bool, err error) {
	f.calls = slices.DeleteFunc(f.calls, func(other *fleetCall) bool { return other == c })
	n := 0
	for i := range c.ops {
		b := f.bucket(c.ops[i].Bucket)
		b.observe()
		for j := range c.ops[i].Spends {
			sp, share := &c.ops[i].Spends[j], &c.shares[n]
			n++
			y := share.limit
			y.open -= share.took + share.booked
			if share.refund != nil {
				y.refunded(share.refund, told && err == nil && sp.Held)
			}
			switch {
			case !told, err != nil && c.ops[i].KeepTaken:
				y.mayTake(f.now, share.took)
			case err == nil && admitted && sp.Held:
				y.most += share.took * tallyScale
			case err != nil || len(c.ops) > 1 || f.shards:
				y.open += share.took
				y.gifted = true
				u := undone{process: c.process, limit: y, n: share.took}
				if err != nil {
					u.of = b.limit(sp.Limit)
					u.of.admitted.gives(u.n)
					u.of.spent.gives(u.n)
				}
				f.undone = append(f.undone, u)
			}
			switch {
			case err == nil && told && sp.Held:
				y.most += share.booked * tallyScale
			case !told, isUncertain(err):
				y.mayTake(f.now, share.booked)
			}
		}
	}
}

// died takes down that a process ended: nobody gives back what it was to give back.
func (f *fleet) died(p *process) {
	for _, c := range slices.Clone(f.calls) {
		if c.process == p {
			f.endShares(c, false, false, nil)
		}
	}
	f.undone = slices.DeleteFunc(f.undone, func(u undone) bool {
		if u.process != p {
			return false
		}
		u.over()
		u.limit.mayTake(f.now, u.n)
		return true
	})
}

// settleUndone has all be given back that is on its way, so that nothing excuses it.
func (f *fleet) settleUndone() {
	for i := range f.undone {
		f.undone[i].over()
	}
	f.undone = nil
}

// observe brings the shortfalls of a bucket up to what is known now.
func (b *simBucket) observe() {
	f := b.fleet
	for _, l := range b.limits {
		y := l.lacks
		y.advance(f.now)
		held, known, leased := b.leasedOf(l.name)
		if unheld := leased - known; unheld > y.unheld { // lost with a process, or given up
			y.most += (unheld - y.unheld) * tallyScale
		}
		y.unheld = leased - known
		y.floor = (leased - held) * tallyScale
		y.most = max(y.most, y.floor)
	}
}

// leasedOf returns what is out on lease of a limit; of that, what is in leases that their
// holders know; and of that, what they have left.
func (b *simBucket) leasedOf(limit string) (held, known, leased int64) {
	for _, v := range b.items {
		if v == nil || v.shard.Retired {
			continue
		}
		for i := range v.leases {
			slot := &v.leases[i]
			n := slot.of(limit)
			leased += n
			if rest, ok := b.restIn(slot, limit); ok {
				held, known = held+min(rest, n), known+n
			}
		}
	}
	return held, known, leased
}

// restIn returns what the holder of a lease has left of a limit, and whether there is one
// that knows of it.
func (b *simBucket) restIn(slot *holding, limit string) (rest int64, ok bool) {
	for _, at := range b.fleet.replicas {
		if !strings.EqualFold(at.process.store.replica, slot.replica) {
			continue // texts are of one replica
		}
		for _, l := range at.process.store.leases.find(&b.site.bucket) {
			h := &l.holder
			if h.text != "" && h.text == slot.text {
				return h.restOf(limit), true
			}
			for i := range h.flights {
				f := &h.flights[i]
				if f.step == nil || f.step.held.text != slot.text || slot.text == "" {
					continue
				}
				if rest = amountOf(f.step.granted, limit); !f.returns {
					rest += h.restOf(limit)
				}
				return rest, true
			}
		}
	}
	return 0, false
}

// checkShortfalls requires that the limits lack no more than is explained.
func (b *simBucket) checkShortfalls() {
	f := b.fleet
	if b.observe(); f.copies {
		return // two holders of one lease: the other side of what is held is not known
	}
	split := false
	for i, v := range b.items {
		split = split || v != nil && !v.shard.Retired && (i > 0 || v.shard.Sharded())
	}
	v := b.items[0]
	for _, l := range b.limits {
		y := l.lacks
		if v == nil {
			continue // full, or split and expired
		}
		x := v.find(l.name)
		if x == nil {
			y.known = false
			continue
		}
		held, _, _ := b.leasedOf(l.name)
		lacks := x.params.Capacity - tokensAt(x, f.late()) - held
		if split || !y.known || x.params != y.params {
			y.adopt(x.params, lacks)
			continue
		}
		if over := lacks*tallyScale - y.most - y.open*tallyScale - y.tolerance(); over > 0 {
			f.failf("bucket %d, limit %s: it lacks %d millitokens of %d, %d more than is explained, with %d open", b.index, l.name, lacks, x.params.Capacity, (over+tallyScale-1)/tallyScale, y.open)
		}
	}
}

// explain takes down what a write lost that is a stated cause: a copy of a take that came
// when its id was wiped out, and a lease that others freed while its holder stood still.
func (b *simBucket) explain(before, after *view, again bool) {
	if before == nil || after == nil {
		return
	}
	for _, l := range b.limits {
		x, y := before.find(l.name), after.find(l.name)
		if again && x != nil && y != nil {
			l.lacks.most += max(tokensAt(x, b.fleet.late())-tokensAt(y, b.fleet.late()), 0) * tallyScale
		}
	}
	for i := range before.leases {
		if slot := &before.leases[i]; after.holding(slot.replica) == nil {
			b.freed(slot)
		}
	}
}

// freed takes down that a lease is no more, which its holder did not return.
func (b *simBucket) freed(slot *holding) {
	for _, at := range b.fleet.replicas {
		if !strings.EqualFold(at.process.store.replica, slot.replica) {
			continue
		}
		for _, l := range at.process.store.leases.find(&b.site.bucket) {
			h := &l.holder
			if h.text != slot.text || slices.ContainsFunc(h.flights, func(f flight) bool { return f.step != nil && f.step.held.text == "" }) {
				continue
			}
			for _, limit := range b.limits {
				limit.lacks.most += min(h.restOf(limit.name), slot.of(limit.name)) * tallyScale
			}
		}
	}
}

// tokensAt returns what a limit has at a time, in Unix ms.
func tokensAt(x *balance, now int64) int64 {
	n := x.state.Tokens
	if ms := now - x.state.Refilled; ms > 0 {
		n += (ms*x.params.Amount + x.state.Remainder) / x.params.Period
	}
	return min(n, x.params.Capacity-x.leased)
}

// lossLog is the log of a store, from which the simulation learns what is counted as lost.
type lossLog struct {
	slog.Handler

	process *process
}

func (h lossLog) Enabled(context.Context, slog.Level) bool { return true }

func (h lossLog) Handle(_ context.Context, r slog.Record) error {
	var b *simBucket
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "entity" {
			b = h.process.fleet.byEntity[a.Value.String()]
		}
		return true
	})
	r.Attrs(func(a slog.Attr) bool {
		if a.Key != "millitokens" || b == nil {
			return true
		}
		h.process.fleet.seen["lost give-back"]++
		for _, limit := range a.Value.Group() {
			b.limit(limit.Key).lacks.mayTake(h.process.fleet.now, limit.Value.Int64())
		}
		return true
	})
	return nil
}
