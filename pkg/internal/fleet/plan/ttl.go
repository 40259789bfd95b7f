package plan

import (
	"math"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

const (
	// ttlMargin is how long a bucket is kept after it must be full again. It is more
	// than clocks may differ and longer than any write can be under way. So no write
	// meets an item whose planned ttl is already over. It is also more than the term of
	// a lease. In ms.
	ttlMargin = int64(time.Hour / time.Millisecond)
	// ttlSlack is how much further a ttl is set than it has to be, so that it is not
	// set with every write. In seconds.
	ttlSlack = int64(time.Hour / time.Second)
)

// ttl returns the ttl that a write leaves, 0 = none. No write lowers one.
//
// So a commuting write has no condition on a ttl that covers it. A write that takes a ttl away,
// or sets the first one, raises the epoch. A take leaves a balance of 0 or more, also with other writes at the same
// time, and a charge the floor or more. So an item is kept until the limits that are written
// to are full from there. The others count from their balance as it was seen: another write
// that lowers one raises the ttl by itself.
func (s *Stage) ttl(after *schema.Bucket) int64 { return s.ttlOf(after, !s.exact) }

// ttlOf is ttl. beside says that others may add takes to the same state.
func (s *Stage) ttlOf(after *schema.Bucket, beside bool) int64 {
	if ttl := after.WindowTTL(); ttl > 0 { // rule: the item of a window is kept until that is over
		return ttl
	}
	if raised(after) { // rule: an item with an extra has no ttl
		return 0
	}
	if after.Shard.Sharded() { // rule: an item of several has no ttl
		return 0 // an item that expires would take its tokens with it
	}
	if s.base.Exists() && s.base.TTL == 0 && !s.exact {
		return 0
	}
	var wait int64
	for i := range after.Balances {
		b := &after.Balances[i]
		m := newMeter(b, after.LineOf(b), s.now)
		left := m.bucket(number{b.FullAt, b.Carried})
		if beside { // rule: a ttl covers the takes that others may add
			left.Tokens = min(left.Tokens, s.lowest(b))
		}
		if after.Leased() { // a holder that is gone may have spent all that it held // rule: a leased item is kept until it is full from nothing
			left.Tokens, m.params = min(left.Tokens, 0), Params(b, schema.WholeLine())
		}
		wait = max(wait, left.TimeToUnused(m.params, s.now))
	}
	if after.Lasts(s.now) { // rule: an item is kept while forgotten limits last
		wait = max(wait, after.Until-max(s.now, after.Until-tokenbucket.Forever))
	}
	needed := ttlAfter(s.now, wait)
	switch {
	case needed == 0:
		return 0
	case s.base.Exists() && s.base.TTL >= needed:
		return s.base.TTL
	}
	return needed + ttlSlack
}

// lowest returns the least balance of a limit that this write, and others at the same
// time, may leave, as far as it matters here.
func (s *Stage) lowest(b *schema.Balance) int64 {
	k := s.find(b.Limit.Name)
	if k < 0 {
		return tokenbucket.MaxAmount
	}
	switch f := &s.staged[k].form; {
	case f.debt: // rule: a ttl covers the debt that others may add
		return b.Floor
	case f.lifted || f.by.Sign() > 0 || !s.base.Exists() && s.staged[k].taken().Sign() > 0:
		return 0
	}
	return tokenbucket.MaxAmount
}

// ttlAfter returns the ttl of an item that must be kept for wait ms from now on, in Unix
// seconds; 0 = it can have none.
func ttlAfter(now, wait int64) int64 {
	if wait >= tokenbucket.Forever || now > math.MaxInt64-tokenbucket.Forever-ttlMargin {
		return 0
	}
	ttl := (now + wait + ttlMargin + limiter.Milli - 1) / limiter.Milli
	if ttl <= 0 || ttl > schema.MaxTTL-ttlSlack {
		return 0
	}
	return ttl
}
