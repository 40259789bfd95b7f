package dynamo

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// site says where the shards of a bucket are.
type site struct {
	ns     string // id of the namespace
	bucket limiter.BucketKey
}

// shard returns the key of a shard.
func (s *site) shard(index int) schema.Key {
	return schema.BucketKey(s.ns, s.bucket.Entity, s.bucket.Resource, s.bucket.Variant, index)
}

// request is one op on its way through a lane. It shares no memory with the
// caller, who may leave at any time.
type request struct {
	site
	key     schema.Key
	limits  *limiter.Limits
	version schema.Version
	now     int64 // the caller's clock, not corrected
	spends  []spend
	call    *call     // nil for what the store itself gives back
	keep    bool      // where the call has no decision its caller is admitted: the tokens stay taken
	expires time.Time // on the lane's clock; not part of any write that is sent later
	state   atomic.Int32
	patient time.Time // until when a give-back is tried again; zero = it has not failed yet

	policy  limiter.LeasePolicy
	asks    bool // it takes or looks, and so knows the policy
	counted bool // in the lane's demand

	confirmed bool // the view was asked for after the request came: it may be answered from it
	doubts    int  // replies that it waited for because the clock cannot be trusted
	uncertain bool // an earlier write may have taken for it, and be applied yet

	// Set by the lane, before the call is told that the request is done:

	admitted bool
	under    *limiter.Limits
	err      error
}

// Stages of a request. The lane moves it between waiting and sent, the caller who
// leaves to gone.
const (
	waiting int32 = iota
	sent          // in a write whose outcome is not known
	finished
	gone
)

// spend is what a request does with one limit. What it refunds and charges is netted.
type spend struct {
	limit string
	ask   int64 // above 0: as much of it as is there is what is needed and taken
	need  int64 // the balance that must be there; 0 = none
	take  int64 // taken if admitted
	give  int64
	cost  int64
	usage int64 // consumed whatever the outcome, net; what is taken is added to it

	held     bool
	exceeded bool
	found    int64              // the balance that need was held against
	left     tokenbucket.Bucket // the state after the decision
	back     int64              // what has to be added to it when the take is given back
}

// gives reports whether the request adds tokens.
func (r *request) gives() bool {
	for i := range r.spends {
		if r.spends[i].give > 0 {
			return true
		}
	}
	return false
}

// books reports whether the request gives or charges tokens. No two writes may then do
// that, even if their replies are lost.
func (r *request) books() bool {
	return slices.ContainsFunc(r.spends, func(sp spend) bool { return sp.give > 0 || sp.cost > 0 })
}

// takes reports whether the request takes tokens, as it was last planned.
func (r *request) takes() bool {
	return r.admitted && slices.ContainsFunc(r.spends, func(sp spend) bool { return sp.held && sp.take > 0 })
}

// call is a Take that waits for its requests, round by round.
type call struct {
	branches []*branch
	sent     []*request // of this round
	left     atomic.Int32
	done     chan struct{} // closed when every one of them is
}

// newCall turns ops into branches. It refuses amounts that are out of range.
func newCall(now int64, ops []limiter.Op) (*call, error) {
	c := &call{branches: make([]*branch, len(ops))}
	for i := range ops {
		r, err := newRequest(now, &ops[i])
		if err != nil {
			return nil, fmt.Errorf("op %d: %w", i, err)
		}
		r.call = c
		c.branches[i] = newBranch(r, ops[i].Shard)
	}
	return c, nil
}

// next begins a round, and reports whether there is one: not when a branch has got
// less than it wants, and has nothing more to try.
func (c *call) next(f *forest, now time.Time) bool {
	c.sent = nil
	for _, b := range c.branches {
		c.sent = append(c.sent, b.next(f, now)...)
		if b.over && !b.met() {
			return false
		}
	}
	if len(c.sent) == 0 {
		return false
	}
	c.left.Store(int32(len(c.sent))) // #nosec G115 -- few
	c.done = make(chan struct{})
	return true
}

// harvest ends a round.
func (c *call) harvest() {
	for _, b := range c.branches {
		b.harvest()
	}
}

// leave ends the call's claims.
func (c *call) leave() {
	for _, b := range c.branches {
		b.leave()
	}
}

// booked reports whether something was given or charged for a call that is over.
func (c *call) booked() bool {
	return slices.ContainsFunc(c.all(), func(r *request) bool { return r.err == nil && r.books() })
}

// all returns the requests of all rounds.
func (c *call) all() []*request {
	var all []*request
	for _, b := range c.branches {
		all = append(all, b.parts...)
	}
	return all
}

func newRequest(now int64, op *limiter.Op) (*request, error) {
	if op.Limits.Len() == 0 || len(op.Spends) == 0 {
		return nil, fmt.Errorf("%w: no limits or no spends", limiter.ErrInvalid)
	}
	r := &request{
		site:    site{bucket: cloneKey(op.Bucket)},
		limits:  op.Limits,
		version: schema.Version{Generation: op.Generation, Hash: op.Limits.Hash()},
		now:     now,
		spends:  make([]spend, len(op.Spends)),
		keep:    op.KeepTaken,
		policy:  op.Lease,
		asks:    asks(op),
	}
	for i := range op.Spends {
		sp := &op.Spends[i]
		for _, amount := range [...]int64{sp.Take, sp.Charge, sp.Refund} {
			if amount < 0 || amount > tokenbucket.MaxAmount {
				return nil, fmt.Errorf("%w: %d millitokens of limit %q; it must be 0 to %d", limiter.ErrInvalid, amount, sp.Limit, int64(tokenbucket.MaxAmount))
			}
		}
		s := &r.spends[i]
		*s = spend{limit: limitName(op.Limits, sp.Limit), need: sp.Take, take: sp.Take, usage: sp.Charge - sp.Refund}
		s.give, s.cost = max(-s.usage, 0), max(s.usage, 0)
		if sp.Look {
			s.need = max(s.need, limiter.Milli)
		}
	}
	return r, nil
}

// limitName returns a limit's name in memory of the limits, where it is one of them.
func limitName(limits *limiter.Limits, name string) string {
	if i := limits.Find(name); i >= 0 {
		return limits.At(i).Name
	}
	return strings.Clone(name)
}

func cloneKey(k limiter.BucketKey) limiter.BucketKey {
	k.Namespace, k.Entity, k.Resource = strings.Clone(k.Namespace), strings.Clone(k.Entity), strings.Clone(k.Resource)
	return k
}

// report fills in what Take promises of an op. taken says that its takes stand.
func (r *request) report(op *limiter.Op, taken bool) {
	for i := range op.Spends {
		sp, s := &op.Spends[i], &r.spends[i]
		sp.Held, sp.Exceeded = s.held, s.exceeded
		if !s.held {
			sp.Limits, sp.Index, sp.Bucket = nil, 0, tokenbucket.Bucket{}
			continue
		}
		sp.Limits, sp.Index, sp.Bucket = r.under, r.under.Find(s.limit), s.left
		if !taken {
			sp.Bucket.Tokens += s.back
		}
	}
}

// undo returns the request that gives back what this one took, or nil when it took
// nothing. What a charge beside the take could not book for want of tokens is
// booked by it.
func (r *request) undo() *request {
	if !r.takes() {
		return nil
	}
	u := &request{key: r.key, site: r.site, limits: r.limits, version: r.version, now: r.now}
	for i := range r.spends {
		if s := &r.spends[i]; s.held && s.take > 0 {
			u.spends = append(u.spends, spend{limit: s.limit, give: s.back, usage: -s.take})
		}
	}
	return u
}
