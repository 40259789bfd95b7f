package plan

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// ErrLent says that an adjustment needs tokens or room that leases have: they are to be
// recalled before.
var ErrLent = errors.New("parts of the bucket are on lease")

// Adjust returns the changes of all shards of a bucket by an adjustment as of now. Where the
// time of a shard is later, it is as of that. The shards are the leaves of the tree, in order,
// none of them retired or in a split. Changes come in their order, and are to be applied all or
// none.
//
// The balances of the shards add up to those of the bucket:
//
//	reset     each shard is full. An extra stays.
//	set       each shard has its part of the amount.
//	top-up    each shard gets its part, as far as it has room. The others get the rest.
//	          Where none has room left, each gets its part of an extra above the capacity.
//	take-out  each shard gives its part, as far as it has it. The others give the rest.
//	          Where none has any left, all go into debt, down to the debt floors.
//
// While parts are on lease, a top-up is made if the centre has room for it. A take-out is made if
// the centre has the tokens. The others are [ErrLent]. With force they are made all the same:
// leases count as full, so that at most the new balance is there. A top-up then loses the excess
// above the room of the centre. The slot of the replica wish has no parts. It goes with the
// change where it is the last one.
//
// Errors of the caller wrap limiter.ErrInvalid. A state that has to change before is ErrShard.
func Adjust(leaves []*schema.Bucket, now int64, a *limiter.Adjustment, wish uint32, force bool) ([]*Adjusted, error) {
	for _, b := range leaves {
		if !b.Exists() || b.Shard.Moving || b.Shard.Retired || b.Shard.Epoch >= schema.MaxEpoch {
			return nil, ErrShard
		}
		now = max(now, b.Time())
	}
	items := make([]*Adjusted, len(leaves))
	for i, b := range leaves {
		items[i] = newAdjusted(b, now, wish)
	}
	found := false
	for i := range leaves[0].Balances {
		limit := &leaves[0].Balances[i]
		if limit.Dormant || a.Limit != "" && a.Limit != limit.Limit.Name {
			continue
		}
		found = true
		if err := adjust(items, limit.Limit.Name, a, force); err != nil {
			return nil, err
		}
	}
	if !found {
		return nil, fmt.Errorf("%w: the bucket holds no limit %q", limiter.ErrInvalid, a.Bucket.Shown(a.Limit))
	}
	for _, w := range items {
		if a.Kind == limiter.AdjustReset && a.Limit == "" {
			w.after.Forgotten = schema.Forgotten{}
			w.after.Balances = slices.DeleteFunc(w.after.Balances, func(of schema.Balance) bool { return of.Dormant })
		}
		w.finish()
	}
	return items, nil
}

// adjust adjusts one limit in all shards that hold it.
func adjust(items []*Adjusted, limit string, a *limiter.Adjustment, force bool) error {
	var parts []*portion
	lent := false
	for _, w := range items {
		if p := w.portion(limit); p != nil {
			parts = append(parts, p)
			lent = lent || w.lent()
		}
	}
	wanted := lent && !force
	switch a.Kind {
	case limiter.AdjustReset:
		if wanted {
			return ErrLent
		}
		for _, p := range parts {
			if p.Extra() == 0 {
				p.set(p.Whole.Capacity) // rule: a reset fills a shard by its own limits
			}
		}
	case limiter.AdjustSet:
		target, err := a.Target(parts[0].Limit, 0) // a set balance carries no use
		switch {
		case err != nil:
			return err
		case wanted:
			return ErrLent
		}
		for _, p := range parts {
			p.set(target)
		}
	case limiter.AdjustTopUp:
		amounts, rest := spread(a.Tokens, parts, (*portion).lack)
		if wanted && rest > 0 {
			return ErrLent
		}
		if a.Excess != limiter.ExcessKept {
			rest = 0
		} else if err := raises(parts, a, rest); err != nil {
			return err
		}
		for i, p := range parts {
			p.give(amounts[i], schema.PartOf(rest, p.shard.Index, p.shard.Level))
		}
	case limiter.AdjustTakeOut:
		amounts, rest := spread(a.Tokens, parts, (*portion).stock)
		if wanted && rest > 0 {
			return ErrLent
		}
		debts, beyond := spread(rest, parts, (*portion).credit)
		for i, p := range parts {
			p.take(amounts[i] + debts[i] + schema.PartOf(beyond, p.shard.Index, p.shard.Level))
		}
	}
	return nil
}

// raises refuses an extra that the limit cannot have.
func raises(parts []*portion, a *limiter.Adjustment, extra int64) error {
	if extra == 0 {
		return nil
	}
	whole := tokenbucket.Bucket{}
	for _, p := range parts {
		whole.Tokens += p.tokens()
		whole.Refilled, whole.Carried = p.item.now, max(whole.Carried, p.bucket().Carried)
	}
	if whole.Carried == 0 {
		whole.Carried = min(parts[0].Whole.Capacity-whole.Tokens, 0)
	}
	_, err := a.Raised(parts[0].Limit, parts[0].Whole, whole, a.Tokens, whole.Refilled)
	return err
}

// spread divides an amount among shards: to each its part, as far as the shard can have it,
// and the rest to the first shards that can have more. rest is the amount that is left.
func spread(amount int64, parts []*portion, bears func(*portion) int64) (amounts []int64, rest int64) {
	amounts, rest = make([]int64, len(parts)), amount
	for i, p := range parts {
		amounts[i] = min(schema.PartOf(amount, p.shard.Index, p.shard.Level), bears(p), rest)
		rest -= amounts[i]
	}
	for i, p := range parts {
		more := min(bears(p)-amounts[i], rest)
		amounts[i] += more
		rest -= more
	}
	return amounts, rest
}

// portion is one limit of one shard.
type portion struct {
	schema.Balance // of the state after the change

	item  *Adjusted
	shard *schema.Shard
	meter meter
	seen  number
	form  form
	extra int64 // millitokens that are added above the capacity
}

// tokens returns the balance of the centre, in millitokens.
func (p *portion) tokens() int64 { return p.bucket().Tokens }

// bucket returns the limit as it was seen.
func (p *portion) bucket() tokenbucket.Bucket { return p.meter.bucket(p.meter.fill(p.seen)) }

// lack returns the millitokens that the centre has room for, rounded up.
func (p *portion) lack() int64 { return max(p.meter.params.Capacity-p.tokens(), 0) }

// stock returns the millitokens that are there.
func (p *portion) stock() int64 { return max(p.tokens(), 0) }

// credit returns the millitokens of debt that are left down to the floor.
func (p *portion) credit() int64 { return max(min(p.tokens(), 0)-p.Floor, 0) }

// set gives the limit its part of a balance that does not depend on the one before. Leases count as full.
func (p *portion) set(whole int64) {
	target := schema.PartOf(max(whole, 0), p.shard.Index, p.shard.Level) - schema.PartOf(max(-whole, 0), p.shard.Index, p.shard.Level)
	lacks := roomOf(&p.Balance, schema.Parts).Sub(p.meter.units(target))
	p.form = form{touched: true, lifted: true, lift: p.meter.refilled.Add(lacks)}
	p.Carried = 0
}

// become has the limit have a number that rests on the state that was seen.
func (p *portion) become(n number) {
	p.form = form{touched: true, lifted: true, lift: n.v}
	p.Carried, p.item.pinned = n.carried, true
}

// give adds millitokens. They must have their room when the change is applied: the reported amount is
// the booked one. An extra is added to the one that is there: writes that change it in between are exact, and
// one that ends it raises the epoch.
func (p *portion) give(millitokens, extra int64) {
	if extra > 0 && p.seen.carried > 0 { // use that refill has made up for since
		p.become(p.meter.raise(number{v: p.meter.refilled}, extra))
		return
	}
	p.extra = extra
	p.Carried -= extra
	if millitokens == 0 {
		return
	}
	least := p.meter.refilled.Add(p.meter.units(millitokens - 1)) // the last one may have a part of its room
	p.form = form{touched: true, by: p.meter.units(-millitokens), least: edgeAt(least)}
}

// take subtracts millitokens, down to the debt floor. Other writes that come before must not
// change which of the three forms it has.
func (p *portion) take(millitokens int64) {
	m, v := &p.meter, p.seen.v
	x, floor := m.units(millitokens), m.refilled.Add(m.room).Add(m.units(-p.Floor))
	least := floor.Sub(x) // from there on the floor is reached
	switch {
	case millitokens == 0, v.Cmp(floor) >= 0:
	case p.seen.carried < 0:
		seen := m.fill(p.seen)
		p.become(m.take(seen, m.charged(seen, millitokens, p.Floor)))
	case m.full(p.seen):
		if least.Cmp(m.refilled) < 0 {
			x = floor.Sub(m.refilled)
		}
		p.form = form{touched: true, lifted: true, lift: m.refilled, by: x, most: edgeAt(m.refilled)}
		p.Carried = m.bucket(p.seen).Carried
		p.item.pinned = p.item.pinned || p.seen.carried > 0
	case v.Cmp(least) <= 0:
		p.form = form{touched: true, by: x, least: edgeAt(m.refilled), most: edgeAt(least)}
	default:
		p.form = form{touched: true, lifted: true, lift: floor, least: edgeAt(least), most: edgeAt(floor)}
	}
}
