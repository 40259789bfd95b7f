package lease

import "github.com/ratelimit/ratelimit/pkg/tokenbucket"

// Clock is a reading of the clocks that end a lease.
type Clock struct {
	Mono int64  // monotonic, in milliseconds
	Wall int64  // wall clock, in Unix milliseconds
	Era  uint64 // changes when the monotonic clock may have stood still
}

// candidate is a lease that the slot may hold: a share of the bucket of each limit.
type candidate struct {
	seq     uint16
	rate    int // parts that it has once its write is known to be applied
	room    int
	buckets []tokenbucket.Bucket // by limit
	params  []tokenbucket.Params // that refill the buckets
	sent    Clock                // before the send of its write
}

// share returns the bucket parameters of a share of all limits, which must be in range.
func share(limits []tokenbucket.Params, rate, room int) []tokenbucket.Params {
	out := make([]tokenbucket.Params, len(limits))
	for l, p := range limits {
		out[l], _ = Scale(p, rate, room)
	}
	return out
}

// granted returns the candidate of a lease write while its outcome is not known: rate and
// room are the lesser of those before and after it, so that new ones count from the reply.
// The base is refilled to the time of the plan.
func granted(limits []tokenbucket.Params, base *candidate, p *Plan) candidate {
	c := candidate{
		seq: p.Slot.Seq, rate: p.Slot.Rate, room: p.Slot.Room, sent: p.clock,
		buckets: make([]tokenbucket.Bucket, len(limits)),
		params:  share(limits, min(base.rate, p.Slot.Rate), p.Slot.Room), // rule: new rate counts from the reply, and given rate is gone from the plan
	}
	for l := range limits {
		b := base.buckets[l]
		c.buckets[l] = tokenbucket.Bucket{Tokens: b.Tokens + p.Draw[l], Remainder: b.Remainder, Refilled: b.Refilled} // rule: given tokens are gone from the plan
		if p.Slot.Room > base.room {
			c.params[l].Capacity = min(c.params[l].Capacity, base.params[l].Capacity+max(p.Draw[l], 0)) // rule: new room counts from the reply
		}
	}
	return c
}

// empty returns the candidate of no lease at all.
func empty(limits []tokenbucket.Params) candidate {
	return candidate{buckets: make([]tokenbucket.Bucket, len(limits)), params: share(limits, 0, 0)}
}

// leases reports whether the candidate is a lease: it has parts.
func (c *candidate) leases() bool { return c.rate > 0 || c.room > 0 }

// refill brings the buckets up to a time.
func (c *candidate) refill(now int64) {
	for l := range c.buckets {
		c.buckets[l] = c.buckets[l].Refill(c.params[l], now)
	}
}

// confirm gives the lease the rate and the room that its write granted.
func (c *candidate) confirm(limits []tokenbucket.Params) {
	c.params = share(limits, c.rate, c.room)
}

// alive reports whether a term from the send has room for a reading of the clocks.
func (c *candidate) alive(now Clock) bool {
	return now.Era == c.sent.Era && now.Mono-c.sent.Mono < Term && now.Wall-c.sent.Wall < Term // rule: a lease ends by the monotonic clock
}

// candidates are the leases that the slot may hold. The first is the one that it is known
// to hold.
type candidates []candidate

// refill brings all buckets up to a time.
func (cs candidates) refill(now int64) {
	for i := range cs {
		cs[i].refill(now)
	}
}

// least returns the millitokens of a limit that every candidate has at a time. Below zero
// is debt.
func (cs candidates) least(limit int, now int64) int64 {
	least := int64(0)
	for i := range cs {
		c := &cs[i]
		c.buckets[limit] = c.buckets[limit].Refill(c.params[limit], now)
		if n := c.buckets[limit].Tokens; i == 0 || n < least {
			least = n
		}
	}
	return least
}

// add changes the balance of every candidate. The buckets are refilled, and have room.
func (cs candidates) add(limit int, amount int64) {
	for i := range cs {
		c := &cs[i]
		b := &c.buckets[limit]
		if amount < 0 {
			*b = b.Subtract(c.params[limit], -amount)
		} else {
			b.Tokens += amount
		}
	}
}
