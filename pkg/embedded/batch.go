package embedded

import (
	"context"
	"errors"
	"fmt"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// batch is the content of one transaction.
type batch struct {
	done    chan struct{}
	err     error // set before done is closed
	waited  bool  // a caller waits for it, or may
	buckets []dirtyBucket
	changes []change
}

// dirtyBucket is a bucket whose state in the file is out of date.
type dirtyBucket struct {
	shard  *shard
	hash   uint64
	bucket *bucket
}

// add adds a bucket, unless it is in a batch that is not begun yet.
func (n *batch) add(sh *shard, hash uint64, b *bucket) {
	if !b.block.queued {
		b.block.queued = true
		n.buckets = append(n.buckets, dirtyBucket{sh, hash, b})
	}
}

// wait waits until the batch is in the file. On an error nothing was taken.
func (n *batch) wait(ctx context.Context) error {
	select {
	case <-n.done:
		return n.failure()
	case <-ctx.Done():
		return fmt.Errorf("%w: waiting for the data file: %w", limiter.ErrUnavailable, ctx.Err())
	}
}

func (n *batch) failure() error {
	if n.err == nil || errors.Is(n.err, limiter.ErrClosed) {
		return n.err
	}
	return fmt.Errorf("%w: %w", limiter.ErrUnavailable, n.err)
}
