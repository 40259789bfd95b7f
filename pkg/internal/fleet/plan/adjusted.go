package plan

import (
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// transactionUnits is how many write units a write in a transaction costs for each that it
// costs alone.
const transactionUnits = 2

// Adjusted is the change of one item by an adjustment. Its conditions are the epoch and
// bounds of the balances that it depends on, and not the serial number. So takes that are
// applied before it do not refuse it. It raises the epoch, so that no write that was
// planned before it is applied after it.
type Adjusted struct {
	base, after *schema.Bucket
	now         int64
	portions    []*portion // of the limits that are not dormant
	recalled    bool       // the last slot of a lease goes, which has no parts
	pinned      bool       // the serial number must be that of the base
}

func newAdjusted(base *schema.Bucket, now int64, wish uint32) *Adjusted {
	after := *base
	after.Balances = slices.Clone(base.Balances)
	w := &Adjusted{base: base, after: &after, now: now}
	w.recalled = len(base.Leases) == 1 && base.Leases[0].Replica == wish
	for i := range after.Balances {
		if of := &after.Balances[i]; !of.Dormant {
			w.portions = append(w.portions, &portion{
				Balance: *of, item: w, shard: &base.Shard, meter: newMeter(of, base.Line, now), seen: number{of.FullAt, of.Carried},
			})
		}
	}
	return w
}

// portion returns a limit, nil where the shard does not hold it.
func (w *Adjusted) portion(limit string) *portion {
	for _, p := range w.portions {
		if p.Limit.Name == limit {
			return p
		}
	}
	return nil
}

// lent reports whether a lease has parts.
func (w *Adjusted) lent() bool {
	return w.base.Line.Rate < schema.Parts || w.base.Line.Room < schema.Parts
}

// finish makes the state that the change leaves.
func (w *Adjusted) finish() {
	after := w.after
	for _, p := range w.portions {
		if w.recalled {
			p.realign()
		}
		p.FullAt = p.form.leaves(p.seen.v)
		*after.Any(p.Limit.Name) = p.Balance
	}
	if w.recalled {
		after.Leases, after.Line, after.Pending = nil, schema.WholeLine(), 0
	}
	after.Serial++
	after.Turn = schema.Turn{}
	after.At = w.now
	after.Shard.Epoch++ // rule: an adjustment raises the epoch
	after.Shard.Units += transactionUnits
	after.TTL = w.ttl()
}

// realign has the form leave the number on the line of an item without leases. The centre
// has all parts already, so that the lines are apart by the same at any time.
func (p *portion) realign() {
	shift := p.Refilled(schema.WholeLine(), p.item.now).Sub(p.meter.refilled)
	if p.form.touched = true; p.form.lifted {
		p.form.lift = p.form.lift.Add(shift)
	} else {
		p.form.by = p.form.by.Add(shift)
	}
}

// ttl returns the ttl that the change leaves, 0 = none. Takes that are applied before
// it lower balances, so it is computed from the debt floors.
func (w *Adjusted) ttl() int64 {
	if ttl := w.after.WindowTTL(); ttl > 0 {
		return ttl
	}
	low := *w.after
	low.Balances = slices.Clone(low.Balances)
	for i := range low.Balances {
		of := &low.Balances[i]
		if of.Dormant {
			continue
		}
		m := newMeter(of, low.Line, w.now)
		least := m.number(tokenbucket.Bucket{Tokens: of.Floor, Refilled: w.now}).v
		if least.Cmp(of.FullAt) > 0 { // rule: a ttl after an adjustment counts from the debt floor
			of.FullAt = least
		}
	}
	s := Stage{base: w.base, now: w.now, exact: true}
	return s.ttl(&low)
}

// Before returns the state that the change was planned from.
func (w *Adjusted) Before() *schema.Bucket { return w.base }

// After returns the state that the change leaves of the one that it was planned from.
func (w *Adjusted) After() *schema.Bucket { return w.after }

// Now returns the time of the change, Unix ms.
func (w *Adjusted) Now() int64 { return w.now }

// Update returns the write of the change. A refusal shows the item.
func (w *Adjusted) Update(k schema.Key) *schema.ItemWrite {
	to := schema.NewUpdate(k)
	had, has := w.base.Attributes(), w.after.Attributes()
	w.conditions(to, had)
	for _, p := range w.portions {
		c := change{p.Limit.Name, p.form}
		c.express(to)
		delete(has, schema.LimitAttr(p.Limit.Name, schema.LimitFullAt))
		delete(had, schema.LimitAttr(p.Limit.Name, schema.LimitFullAt))
	}
	for _, p := range w.portions {
		if attr := schema.LimitAttr(p.Limit.Name, schema.LimitCarried); p.extra > 0 {
			to.Add(attr, -p.extra)
			delete(has, attr)
			delete(had, attr)
		}
	}
	w.expire(to)
	for _, name := range []string{schema.AttrSerial, schema.AttrTTL} {
		delete(has, name)
		delete(had, name)
	}
	differ(to, had, has)
	forgetUsage(to, w.base, w.after)
	to.Add(schema.AttrSerial, 1)
	to.Add(schema.AttrUnits, transactionUnits)
	return to
}

// conditions adds the conditions of the change, but for those of balances. The epoch pins the limits,
// the line and the shard.
func (w *Adjusted) conditions(to *schema.ItemWrite, had map[string]types.AttributeValue) {
	to.Require(schema.AttrEpoch, "=", schema.NumberAttribute(w.base.Shard.Epoch))
	to.Require(schema.AttrAt, "<=", schema.NumberAttribute(w.now)) // rule: an adjustment is not before the item
	if w.pinned {
		to.Require(schema.AttrSerial, "=", schema.NumberAttribute(w.base.Serial))
	}
	if w.recalled {
		to.Require(schema.AttrLeases, "=", had[schema.AttrLeases])
	}
}

// expire sets the ttl. Other writes may raise it before, and none lowers it.
func (w *Adjusted) expire(to *schema.ItemWrite) {
	switch was, is := w.base.TTL, w.after.TTL; {
	case was == is:
	case is == 0:
		to.Remove(schema.AttrTTL)
	case was == 0:
		to.RequireAbsent(schema.AttrTTL)
		to.Set(schema.AttrTTL, schema.NumberAttribute(is))
	default:
		to.RaiseTo(schema.AttrTTL, is)
	}
}

// Balances returns the balances of a bucket at now, those of its shards together. Limits are in
// the order of their newest version. A shard that does not hold a limit counts for nothing.
func Balances(leaves []*schema.Bucket, now int64) []limiter.LimitState {
	newest := leaves[0]
	for _, b := range leaves {
		if b.Version.Newer(newest.Version) {
			newest = b
		}
	}
	states := make([]limiter.LimitState, newest.Limits.Len())
	for i := range states {
		states[i].Limit = newest.Limits.At(i)
	}
	for _, b := range leaves {
		view := At(b, now)
		for i := range states {
			name := states[i].Limit.Name
			k, of := b.Limits.Find(name), b.Find(name)
			if k < 0 || of < 0 || states[i].Limit.Unlimited {
				continue
			}
			at := view.Centre[k].Refill(view.Params[k], now)
			states[i].Tokens, states[i].Carried = states[i].Tokens+at.Tokens, states[i].Carried+at.Carried
			states[i].Leased += b.Balances[of].Share.Capacity - view.Params[k].Capacity
		}
	}
	return states
}
