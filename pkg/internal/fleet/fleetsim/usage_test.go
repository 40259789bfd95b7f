package fleetsim_test

import (
	"errors"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// consumed is how much of a limit the items count as consumed, and how much callers consumed: at
// least and at most, where the outcome of a call is not known. It is in millitokens.
type consumed struct {
	counted     int64
	least, most int64
	last        int64                   // that the last write counted
	items       [schema.MaxShards]int64 // the counters of the items
}

// certain records n millitokens that callers consumed; below 0 they are refunds.
func (u *consumed) certain(n int64) { u.least, u.most = u.least+n, u.most+n }

// perhaps records n millitokens that may count or not.
func (u *consumed) perhaps(n int64) { u.least, u.most = u.least+min(n, 0), u.most+max(n, 0) }

// counts records the counters of an item.
func (f *fleet) counts(b *bucket, shard int, item map[string]types.AttributeValue) {
	for _, l := range b.limits {
		n := int64(0)
		if v, ok := item[schema.LimitAttr(l.name, schema.LimitConsumed)]; ok {
			n = parseNumber(v)
		}
		if _, holds := item[schema.AttrSerial]; !holds || n == 0 && item[schema.LimitAttr(l.name, schema.LimitConsumed)] == nil {
			l.usage.items[shard] = 0 // the item is gone, or the limit
			continue
		}
		l.usage.last = n - l.usage.items[shard]
		l.usage.counted += l.usage.last
		l.usage.items[shard] = n
		f.tracef("bucket %d, limit %s: %d millitokens are counted as consumed, callers consumed %d to %d", b.index, l.name, l.usage.counted, l.usage.least, l.usage.most)
	}
}

// parseNumber returns a whole number of an item.
func parseNumber(v types.AttributeValue) (n int64) {
	negative := false
	for _, c := range show(v) {
		if c == '-' {
			negative = true
			continue
		}
		n = 10*n + int64(c-'0')
	}
	if negative {
		return -n
	}
	return n
}

// endUsage records the answer about a spend.
func (f *fleet) endUsage(c *call, op *limiter.Op, sp *limiter.Spend, admitted bool, err error) {
	u := &f.bucket(op.Bucket).limit(sp.Limit).usage
	net := sp.Charge - sp.Refund
	switch {
	case err == nil && sp.Held:
		if admitted {
			net += sp.Take
		}
		if u.certain(net); net != 0 {
			c.process.consumes(&f.bucket(op.Bucket).limit(sp.Limit).usage, net)
		}
	case err == nil:
		u.perhaps(net) // shards of which some are under other limits
		if admitted {
			u.perhaps(sp.Take)
		}
	case errors.Is(err, limiter.ErrUncertain), op.KeepTaken:
		u.perhaps(net)
		u.perhaps(sp.Take)
	}
}

// interrupted records that the process of a call ended.
func (f *fleet) interrupted(c *call) {
	for i := range c.ops {
		for j := range c.ops[i].Spends {
			sp := &c.ops[i].Spends[j]
			u := &f.bucket(c.ops[i].Bucket).limit(sp.Limit).usage
			u.perhaps(sp.Charge - sp.Refund)
			u.perhaps(sp.Take)
		}
	}
}

// consumes records that callers of a process consumed something, which it counts with its next
// write of the item or of its lease.
func (p *process) consumes(u *consumed, n int64) {
	if p.uncounted == nil {
		p.uncounted = make(map[*consumed]int64)
	}
	p.uncounted[u] += max(n, -n)
}

// forgets records that a process ended: consumption that it has not counted is lost.
func (p *process) forgets() {
	for u, n := range p.uncounted {
		u.least, u.most = u.least-n, u.most+n
	}
	p.uncounted = nil
}

// losesReport records that a lease ended without a return. Where the last write of it had no
// reply, it is unknown whether the write's consumption was counted.
func (p *process) losesReport(b *bucket) {
	if p == nil {
		return
	}
	for _, l := range b.limits {
		if n := p.uncounted[&l.usage]; n > 0 {
			l.usage.perhaps(-n)
		}
	}
}

// checkUsage compares the consumption that the items count with that of callers. A limit that the
// bucket was without for a while has lost its counter.
func (f *fleet) checkUsage() {
	for _, b := range f.buckets {
		for _, l := range b.limits {
			if u := &l.usage; !b.twins && !l.lacks.unknown && (u.counted < u.least || u.counted > u.most+f.lostTwice()) {
				f.failf("bucket %d, limit %s, at rest: %d millitokens are counted as consumed, and callers consumed %d to %d", b.index, l.name, u.counted, u.least, u.most)
			}
		}
	}
}
