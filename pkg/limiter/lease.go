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
	store Store

	mu     sync.Mutex
	closed bool
	held   []heldBucket
}

// heldBucket is what a lease has of one bucket.
type heldBucket struct {
	key        BucketKey
	limits     *Limits
	generation uint64
	taken      map[string]int64 // millitokens by limit, never below 0
}

// Acquire decides a request and, when it is admitted, returns a lease of what it
// took; when it is denied the lease is nil and the decision says why. A decision
// made by policy because the store did not answer took nothing: its lease is empty,
// and adjusting it does nothing.
func (l *Limiter) Acquire(ctx context.Context, now time.Time, req *Request) (*Lease, *Decision, error) {
	d := new(Decision)
	if err := l.Decide(ctx, now, req, d); err != nil {
		return nil, nil, err
	}
	if !d.Admitted {
		return nil, d, nil
	}
	lease := &Lease{store: l.store}
	if d.Policy != Unset {
		return lease, d, nil
	}
	for _, op := range d.scratch.ops {
		h := heldBucket{key: op.Bucket, limits: op.Limits, generation: op.Generation, taken: make(map[string]int64)}
		for _, sp := range op.Spends {
			if sp.Held && sp.Charge == 0 && sp.Refund == 0 {
				h.taken[sp.Limit] = sp.Take
			}
		}
		lease.held = append(lease.held, h)
	}
	return lease, d, nil
}

// Adjust books, at every level of the chain where the limit was taken, delta
// millitokens by limit: above 0 more was used than taken, below 0 less. More is
// booked whatever the balance, into debt if need be, so Adjust never fails for
// want of tokens. It fails with [ErrInvalid] for a limit that the lease does not
// hold and for giving back more than it holds, with [ErrClosed] after Rollback,
// and with the store's error otherwise; then it may be tried again unless the
// error is [ErrUncertain].
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
	return l.book(ctx, now, func(h *heldBucket, limit string) int64 { return delta[limit] })
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
	if err := l.book(ctx, now, func(h *heldBucket, limit string) int64 { return -h.taken[limit] }); err != nil {
		return err
	}
	l.closed = true
	return nil
}

// check refuses a delta that the lease cannot book.
func (l *Lease) check(delta map[string]int64) error {
	for limit, n := range delta {
		known := false
		for i := range l.held {
			taken, ok := l.held[i].taken[limit]
			known = known || ok
			if ok && (taken+n < 0 || n > tokenbucket.MaxAmount || n < -tokenbucket.MaxAmount) {
				return fmt.Errorf("%w: adjusting %s by %d millitokens: the lease holds %d", ErrInvalid, limit, n, taken)
			}
		}
		if !known {
			return fmt.Errorf("%w: the lease holds nothing of limit %q", ErrInvalid, limit)
		}
	}
	return nil
}

// book applies amount to every limit of every bucket, and keeps count.
func (l *Lease) book(ctx context.Context, now time.Time, amount func(h *heldBucket, limit string) int64) error {
	var ops []Op
	for i := range l.held {
		h := &l.held[i]
		op := Op{Bucket: h.key, Limits: h.limits, Generation: h.generation}
		for limit := range h.taken {
			switch n := amount(h, limit); {
			case n > 0:
				op.Spends = append(op.Spends, Spend{Limit: limit, Charge: n})
			case n < 0:
				op.Spends = append(op.Spends, Spend{Limit: limit, Refund: -n})
			}
		}
		if len(op.Spends) > 0 {
			ops = append(ops, op)
		}
	}
	if len(ops) == 0 {
		return nil
	}
	if _, err := l.store.Take(ctx, now, ops); err != nil {
		return err
	}
	for i := range l.held {
		h := &l.held[i]
		for limit := range h.taken {
			h.taken[limit] += amount(h, limit)
		}
	}
	return nil
}
