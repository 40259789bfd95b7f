package limiter

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// Lease is the tokens of an admitted request, for work whose cost is known only when it is done.
// Adjust it to the true cost, or roll it back when the work failed. It needs no close; tokens that
// are not refunded stay taken. It is a caller's, and no part of the leases of a fleet. It is safe for
// concurrent use.
type Lease struct {
	limiter  *Limiter
	consumed map[string]bool // limits that the request consumed, also unlimited ones

	mu      sync.Mutex
	closed  bool
	buckets []takenBucket
}

// takenBucket is the tokens of a lease from one bucket.
type takenBucket struct {
	key        BucketKey
	limits     *Limits
	generation uint64
	shard      int
	taken      map[string]*takenLimit // by limit
}

// takenLimit is the tokens of a lease of one limit, in millitokens, neither below 0.
type takenLimit struct {
	taken     int64 // by the caller's account
	confirmed int64 // part of taken that the bucket surely gave: a charge stops at the debt floor
}

// Acquire decides a request and, when it is admitted, returns a lease of its tokens. When it is
// denied the lease is nil and the decision has the reason. If the store did not answer and a policy
// decided, the lease is empty, and adjusting it does nothing. With the policy [Allow] the store may
// have taken tokens, which stay taken.
func (l *Limiter) Acquire(ctx context.Context, now time.Time, req *Request) (*Lease, *Decision, error) {
	d := new(Decision)
	if err := l.Decide(ctx, now, req, d); err != nil {
		return nil, nil, err
	}
	if !d.Admitted {
		return nil, d, nil
	}
	lease := &Lease{limiter: l, consumed: req.consumed()}
	if d.Policy != Unset {
		return lease, d, nil
	}
	for _, op := range d.scratch.ops {
		h := takenBucket{key: op.Bucket, limits: op.Limits, generation: op.Generation, shard: op.Shard, taken: make(map[string]*takenLimit)}
		for _, sp := range op.Spends {
			if sp.Held && (sp.Take > 0 || sp.Look) { // otherwise a charge or a refund alone
				h.taken[sp.Limit] = &takenLimit{taken: sp.Take, confirmed: sp.Take}
			}
		}
		lease.buckets = append(lease.buckets, h)
	}
	return lease, d, nil
}

// Adjust corrects the use at every level of the chain where the limit was taken. delta is in
// millitokens by limit: above 0 for more use, below 0 for less. More use is charged at any balance,
// into debt if need be, so Adjust never fails for lack of tokens. The part that the limit's MaxDebt
// cuts off is not taken, and is not refunded later. For an unlimited limit nothing is charged.
//
// Adjust fails with [ErrInvalid] for a limit that the request did not consume, and for a refund of
// more than the lease has. It fails with [ErrClosed] after Rollback, and with the store's error
// otherwise; then it may be tried again unless the error is [ErrUncertain].
func (l *Lease) Adjust(ctx context.Context, now time.Time, delta map[string]int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return fmt.Errorf("%w: the lease was rolled back", ErrClosed)
	}
	if len(l.buckets) == 0 {
		return nil
	}
	if err := l.check(delta); err != nil {
		return err
	}
	return l.apply(ctx, now, func(limit string, _ *takenLimit) int64 { return delta[limit] })
}

// Release refunds amounts in millitokens by limit that were not needed. It is Adjust with the
// amounts negated.
func (l *Lease) Release(ctx context.Context, now time.Time, amounts map[string]int64) error {
	delta := make(map[string]int64, len(amounts))
	for limit, n := range amounts {
		delta[limit] = -n
	}
	return l.Adjust(ctx, now, delta)
}

// Rollback refunds all tokens of the lease, adjustments too, and closes it. After an error other
// than [ErrUncertain] it may be tried again.
func (l *Lease) Rollback(ctx context.Context, now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return fmt.Errorf("%w: the lease was rolled back", ErrClosed)
	}
	if err := l.apply(ctx, now, func(_ string, h *takenLimit) int64 { return -h.taken }); err != nil {
		return err
	}
	l.closed = true
	return nil
}

// check refuses a delta that the lease does not allow.
func (l *Lease) check(delta map[string]int64) error {
	for limit, n := range delta {
		if !l.consumed[limit] {
			return fmt.Errorf("%w: the request took nothing of limit %q", ErrInvalid, limit)
		}
		for i := range l.buckets {
			h, ok := l.buckets[i].taken[limit]
			if ok && (h.taken+n < 0 || n > tokenbucket.MaxAmount || n < -tokenbucket.MaxAmount) {
				return fmt.Errorf("%w: adjusting %s by %d millitokens: the lease holds %d", ErrInvalid, limit, n, h.taken)
			}
		}
	}
	return nil
}

// apply charges or refunds amount of every limit of every bucket, and updates the lease.
func (l *Lease) apply(ctx context.Context, now time.Time, amount func(limit string, h *takenLimit) int64) error {
	var ops []Op
	var of []*takenBucket // of each op
	for i := range l.buckets {
		b := &l.buckets[i]
		op := Op{Bucket: b.key, Limits: b.limits, Generation: b.generation, Shard: b.shard}
		for limit, h := range b.taken {
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
	for i := range l.buckets {
		for limit, h := range l.buckets[i].taken {
			h.taken += amount(limit, h)
		}
	}
	for i := range ops {
		for j := range ops[i].Spends {
			sp := &ops[i].Spends[j]
			of[i].taken[sp.Limit].count(sp)
		}
	}
	return nil
}

// refund returns the refund to the bucket for n millitokens of the caller. Tokens that the bucket
// never gave are deducted first, so that no token is created.
func (h *takenLimit) refund(n int64) int64 { return min(h.confirmed, n-(h.taken-h.confirmed)) }

// count records the charged part of a spend. At the debt floor the charge may have been cut by an
// unknown amount, so none of it counts.
func (h *takenLimit) count(sp *Spend) {
	h.confirmed -= sp.Refund
	if sp.Held && sp.Bucket.Tokens > sp.Limits.At(sp.Index).DebtFloor() {
		h.confirmed += sp.Charge
	}
}
