package limiter

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// Lease holds what an admitted request took, for work whose cost is known only
// when it is done: adjust it to the true cost, or roll it back when the work
// failed. It needs no closing; what is not given back stays taken. It is safe for
// concurrent use.
type Lease struct {
	limiter *Limiter
	asked   map[string]bool // the limits that the request consumed, also where they are unlimited

	mu     sync.Mutex
	closed bool
	held   []heldBucket
}

// heldBucket is what a lease has of one bucket.
type heldBucket struct {
	key        BucketKey
	limits     *Limits
	generation uint64
	shard      int
	held       map[string]*holding // by limit
}

// holding is what a lease has of one limit, in millitokens, neither below 0.
type holding struct {
	taken  int64 // by the caller's account
	booked int64 // of it, what the bucket surely gave: a charge stops at the debt floor
}

// Acquire decides a request and, when it is admitted, returns a lease of what it
// took; when it is denied the lease is nil and the decision says why. The lease of a
// decision made by policy, because the store did not answer, is empty: adjusting it does
// nothing. With the policy [Allow] the store may have taken tokens, which stay taken.
func (l *Limiter) Acquire(ctx context.Context, now time.Time, req *Request) (*Lease, *Decision, error) {
	d := new(Decision)
	if err := l.Decide(ctx, now, req, d); err != nil {
		return nil, nil, err
	}
	if !d.Admitted {
		return nil, d, nil
	}
	lease := &Lease{limiter: l, asked: req.consumed()}
	if d.Policy != Unset {
		return lease, d, nil
	}
	for _, op := range d.scratch.ops {
		h := heldBucket{key: op.Bucket, limits: op.Limits, generation: op.Generation, shard: op.Shard, held: make(map[string]*holding)}
		for _, sp := range op.Spends {
			if sp.Held && (sp.Take > 0 || sp.Look) { // neither: only charged, or given back
				h.held[sp.Limit] = &holding{taken: sp.Take, booked: sp.Take}
			}
		}
		lease.held = append(lease.held, h)
	}
	return lease, d, nil
}

// Adjust books, at every level of the chain where the limit was taken, delta
// millitokens by limit: above 0 more was used than taken, below 0 less. More is
// booked whatever the balance, into debt if need be, so Adjust never fails for
// want of tokens; what the limit's MaxDebt cuts off was not taken, and is not given
// back later. Where a limit is unlimited there is nothing to book. Adjust fails
// with [ErrInvalid] for a limit that the request did not consume and for giving
// back more than the lease holds, with [ErrClosed] after Rollback, and with the
// store's error otherwise; then it may be tried again unless the error is
// [ErrUncertain].
func (l *Lease) Adjust(ctx context.Context, now time.Time, delta map[string]int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return fmt.Errorf("%w: the lease was rolled back", ErrClosed)
	}
	if len(l.held) == 0 {
		return nil
	}
	if err := l.check(delta); err != nil {
		return err
	}
	return l.book(ctx, now, func(limit string, _ *holding) int64 { return delta[limit] })
}

// Release gives back amounts in millitokens by limit that turned out not to be
// needed. It is Adjust with the amounts negated.
func (l *Lease) Release(ctx context.Context, now time.Time, amounts map[string]int64) error {
	delta := make(map[string]int64, len(amounts))
	for limit, n := range amounts {
		delta[limit] = -n
	}
	return l.Adjust(ctx, now, delta)
}

// Rollback gives back all that the lease holds, adjustments too, and closes it.
// After an error other than [ErrUncertain] it may be tried again.
func (l *Lease) Rollback(ctx context.Context, now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return fmt.Errorf("%w: the lease was rolled back", ErrClosed)
	}
	if err := l.book(ctx, now, func(_ string, h *holding) int64 { return -h.taken }); err != nil {
		return err
	}
	l.closed = true
	return nil
}

// check refuses a delta that the lease cannot book.
func (l *Lease) check(delta map[string]int64) error {
	for limit, n := range delta {
		if !l.asked[limit] {
			return fmt.Errorf("%w: the request took nothing of limit %q", ErrInvalid, limit)
		}
		for i := range l.held {
			h, ok := l.held[i].held[limit]
			if ok && (h.taken+n < 0 || n > tokenbucket.MaxAmount || n < -tokenbucket.MaxAmount) {
				return fmt.Errorf("%w: adjusting %s by %d millitokens: the lease holds %d", ErrInvalid, limit, n, h.taken)
			}
		}
	}
	return nil
}

// book applies amount to every limit of every bucket, and keeps count.
func (l *Lease) book(ctx context.Context, now time.Time, amount func(limit string, h *holding) int64) error {
	var ops []Op
	var of []*heldBucket // of each op
	for i := range l.held {
		b := &l.held[i]
		op := Op{Bucket: b.key, Limits: b.limits, Generation: b.generation, Shard: b.shard}
		for limit, h := range b.held {
			switch n := amount(limit, h); {
			case n > 0:
				op.Spends = append(op.Spends, Spend{Limit: limit, Charge: n})
			case h.refund(-n) > 0:
				op.Spends = append(op.Spends, Spend{Limit: limit, Refund: h.refund(-n)})
			}
		}
		if len(op.Spends) > 0 {
			ops, of = append(ops, op), append(of, b)
		}
	}
	if len(ops) > 0 {
		if _, err := l.limiter.store.Take(ctx, now, ops); err != nil {
			return err
		}
		l.limiter.learn(now, ops)
	}
	for i := range l.held {
		for limit, h := range l.held[i].held {
			h.taken += amount(limit, h)
		}
	}
	for i := range ops {
		for j := range ops[i].Spends {
			sp := &ops[i].Spends[j]
			of[i].held[sp.Limit].count(sp)
		}
	}
	return nil
}

// refund returns what the bucket gets when the caller gives n back: what was
// never booked is given back first, so that no token comes from nowhere.
func (h *holding) refund(n int64) int64 { return min(h.booked, n-(h.taken-h.booked)) }

// count notes what was booked of a spend. Where the balance is at the debt floor
// the charge may have been cut, by how much is not known: none of it counts.
func (h *holding) count(sp *Spend) {
	h.booked -= sp.Refund
	if sp.Held && sp.Bucket.Tokens > sp.Limits.At(sp.Index).DebtFloor() {
		h.booked += sp.Charge
	}
}
