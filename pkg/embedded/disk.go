package embedded

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
	"unique"

	"github.com/ratelimit/ratelimit/pkg/embedded/datafile"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// patience is how long a batch is kept that nobody waits for, so that a few
// transactions renew the blocks of many buckets.
const renewDelay = 10 * time.Millisecond

// disk writes to the file, in groups: whatever is asked for while one transaction is
// under way goes into the next, which begins at once if anybody waits for it.
type disk struct {
	cfg   *Config
	table *table
	file  *datafile.File

	failedAt     atomic.Int64 // Unix s
	commitErrors atomic.Int64

	mu      sync.Mutex
	next    *batch // nil = nothing is asked for
	closing bool
	last    []map[uint64]*bucket // that Close took from the shards

	moving sync.Mutex // held while usage moves from buckets to rows
	moved  moved      // rows since usage was compared with budgets
	// namespaces that the file knows are in use. The writer owns it.
	namespaces map[unique.Handle[string]]bool

	wake  chan struct{} // holds a token when there is a batch, or it is waited for, or none will come
	ended chan struct{} // closed when the writer has ended

	finished sync.Once
}

func newDisk(t *table, file *datafile.File) *disk {
	return &disk{
		cfg: t.cfg, table: t, file: file, namespaces: make(map[unique.Handle[string]]bool),
		wake: make(chan struct{}, 1), ended: make(chan struct{}),
	}
}

// want asks for a newer state of a bucket, and returns the batch that it will be in,
// or a later one. The bucket's shard must be locked.
func (d *disk) want(sh *shard, hash uint64, b *bucket) *batch {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.waited()
	n.add(sh, hash, b)
	return n
}

// renew asks for a newer state of a bucket that nobody waits for yet. The bucket's shard
// must be locked.
func (d *disk) renew(sh *shard, hash uint64, b *bucket) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.batch().add(sh, hash, b)
}

// ask asks for changes, in this order, and returns the batch that they will be in.
func (d *disk) ask(changes ...change) *batch {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.waited()
	n.changes = append(n.changes, changes...)
	return n
}

// write has changes written, in this order, and waits until they are. An error that
// wraps limiter.ErrUncertain leaves open whether they are, now or later.
func (d *disk) write(ctx context.Context, changes ...change) error {
	n := d.ask(changes...)
	select {
	case <-n.done:
	case <-ctx.Done():
		return fmt.Errorf("%w: waiting for the data file: %w", limiter.ErrUncertain, ctx.Err())
	}
	if errors.Is(n.err, datafile.ErrUncertain) {
		return fmt.Errorf("%w: %w", limiter.ErrUncertain, n.err)
	}
	return n.failure()
}

// batch returns the next batch. d.mu must be locked.
func (d *disk) batch() *batch {
	if d.next != nil {
		return d.next
	}
	n := &batch{done: make(chan struct{})}
	if d.closing {
		n.err = limiter.ErrClosed
		close(n.done)
		return n
	}
	d.next = n
	d.signal()
	return n
}

// waited returns the next batch, for somebody who waits for it. d.mu must be locked.
func (d *disk) waited() *batch {
	n := d.batch()
	if !n.waited {
		n.waited = true
		d.signal()
	}
	return n
}

// signal wakes the writer, unless it is awake already.
func (d *disk) signal() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// close ends the writer when it has written all that was asked for. After an error it may be called again.
func (d *disk) close(ctx context.Context) error {
	d.mu.Lock()
	d.closing = true
	d.mu.Unlock()
	d.signal()
	return closed(ctx, d.ended)
}

// keep keeps the buckets of a shard for finish.
func (d *disk) keep(buckets map[uint64]*bucket) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last = append(d.last, buckets)
}

// grace is how long a bucket is kept after it was full and last touched. A caller
// whose clock is behind by less finds in the new bucket what it would in the old.
const grace = time.Minute
