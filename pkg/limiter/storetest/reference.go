package storetest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// NewReference returns a simple store: one mutex, maps, and balances that are rational numbers. It
// is slow and never drops a bucket. It reports that it is not local, so that a limiter over it uses
// its caches.
func NewReference() limiter.Store { return newReference() }

func newReference() *reference {
	return &reference{
		buckets:    make(refBuckets),
		refRecords: refRecords{records: make(map[recordKey]limiter.Record), names: make(map[string]bool)},
		marks:      make(map[markKey]string),
		secrets:    make(map[string][]byte),
	}
}

type reference struct {
	noOrphans

	purging sync.Mutex // locked by a purge, before mu
	mu      sync.Mutex
	closed  bool
	buckets refBuckets
	refRecords
	marks   map[markKey]string // owners
	secrets map[string][]byte  // by name
}

// Take implements limiter.Store.
func (r *reference) Take(ctx context.Context, now time.Time, ops []limiter.Op) (bool, error) {
	return r.takeAt(ctx, now.UnixMilli(), ops)
}

func (r *reference) takeAt(ctx context.Context, now int64, ops []limiter.Op) (bool, error) {
	if err := validate(ops); err != nil {
		return false, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.usable(ctx); err != nil {
		return false, err
	}
	admitted := true
	for i := range ops {
		b := r.buckets.open(&ops[i], now)
		spends := ops[i].Spends
		for j := range spends {
			if !b.prepare(&spends[j], now) {
				admitted = false
			}
		}
	}
	for i := range ops {
		b := r.buckets[ops[i].Bucket]
		spends := ops[i].Spends
		for j := range spends {
			b.finish(&spends[j], admitted)
		}
	}
	return admitted, nil
}

// usable returns the error of a store that cannot be used.
func (r *reference) usable(ctx context.Context) error {
	if r.closed {
		return fmt.Errorf("reference store: %w", limiter.ErrClosed)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", limiter.ErrUnavailable, err)
	}
	return nil
}

// validate refuses invalid ops.
func validate(ops []limiter.Op) error {
	seen := make(map[limiter.BucketKey]bool, len(ops))
	for i := range ops {
		op := &ops[i]
		if seen[op.Bucket] {
			return fmt.Errorf("%w: op %d has the bucket of an earlier one", limiter.ErrInvalid, i)
		}
		seen[op.Bucket] = true
		if op.Limits.Len() == 0 || len(op.Spends) == 0 {
			return fmt.Errorf("%w: op %d has no limits or no spends", limiter.ErrInvalid, i)
		}
		for _, sp := range op.Spends {
			if amount := [...]int64{sp.Take, sp.Charge, sp.Refund}; slices.Min(amount[:]) < 0 || slices.Max(amount[:]) > tokenbucket.MaxAmount {
				return fmt.Errorf("%w: op %d, limit %s: amounts %v are not in 0 to %d", limiter.ErrInvalid, i, sp.Limit, amount, int64(tokenbucket.MaxAmount))
			}
		}
	}
	if len(ops) == 0 {
		return fmt.Errorf("%w: no ops", limiter.ErrInvalid)
	}
	return nil
}
