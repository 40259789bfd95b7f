package aggregator

import (
	"context"
	"errors"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Splits finishes splits of buckets: the replica that begins one can die before the other half
// is there.
type Splits interface {
	// FinishSplit makes the other half of the shard of a bucket that [Record.Item] names, and notes that
	// it is there. It reports whether it did: a split that another process has finished needs nothing. It
	// may be called at any time, and by several processes. Errors wrap limiter.ErrUnavailable where
	// another try may help.
	FinishSplit(ctx context.Context, item string) (done bool, err error)
}

// maxOpenSplits bounds the splits that are remembered. A replica that uses the bucket finishes the
// others.
const maxOpenSplits = 1000

// OpenSplits are the shards of buckets whose split was not finished by their last record. It is for
// one goroutine. The zero value is empty.
type OpenSplits struct{ items map[string]struct{} }

// Add takes a record in.
func (o *OpenSplits) Add(r *Record) {
	if r.Item == "" {
		return
	}
	delete(o.items, r.Item)
	if r.New == nil || !r.New.Splitting || len(o.items) >= maxOpenSplits {
		return
	}
	if o.items == nil {
		o.items = make(map[string]struct{})
	}
	o.items[r.Item] = struct{}{}
}

// Finish tries each split once. It returns how many it finished, and the errors of the others. Those
// of which another try may help are tried again by the next call.
func (o *OpenSplits) Finish(ctx context.Context, by Splits) (finished int, err error) {
	var failed []error
	for item := range o.items {
		if ctx.Err() != nil {
			break
		}
		done, err := by.FinishSplit(ctx, item)
		if done {
			finished++
		}
		if !errors.Is(err, limiter.ErrUnavailable) && !errors.Is(err, limiter.ErrUncertain) {
			delete(o.items, item)
		}
		if err != nil {
			failed = append(failed, err)
		}
	}
	return finished, errors.Join(failed...)
}
