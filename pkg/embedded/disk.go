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

// renewDelay is the delay of a batch without waiting callers, so that few transactions renew the
// blocks of many buckets.
const renewDelay = 10 * time.Millisecond

// disk writes to the file, in groups. Changes that are requested while one transaction is under way
// go into the next. That one begins at once if a caller waits for it.
type disk struct {
	cfg   *Config
	table *table
	file  *datafile.File

	failedAt     atomic.Int64 // Unix s
	commitErrors atomic.Int64

	mu      sync.Mutex
	next    *batch // nil = no write is requested
	closing bool
	last    []map[uint64]*bucket // the buckets of each shard, for finish

	moving sync.Mutex // locked while usage moves from buckets to rows
	moved  moved      // rows since the last comparison of usage with budgets
	// namespaces that the file has on record as used. The writer owns it.
	namespaces map[unique.Handle[string]]bool

	wake  chan struct{} // has an element when there is a batch, or a caller waits for it, or the writer shall end
	ended chan struct{} // closed when the writer has ended

	finished sync.Once
}

func newDisk(t *table, file *datafile.File) *disk {
	return &disk{
		cfg: t.cfg, table: t, file: file, namespaces: make(map[unique.Handle[string]]bool),
		wake: make(chan struct{}, 1), ended: make(chan struct{}),
	}
}

// want requests a newer state of a bucket in the file, and returns the batch that it will be in, or
// a later one. The bucket's shard must be locked.
func (d *disk) want(sh *shard, hash uint64, b *bucket) *batch {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.waited()
	n.add(sh, hash, b)
	return n
}

// renew requests a newer state of a bucket that no caller waits for yet. The bucket's shard must be
// locked.
func (d *disk) renew(sh *shard, hash uint64, b *bucket) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.batch().add(sh, hash, b)
}

// ask requests changes, in this order, and returns the batch that they will be in.
func (d *disk) ask(changes ...change) *batch {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.waited()
	n.changes = append(n.changes, changes...)
	return n
}

// write requests changes, in this order, and waits for their commit. An error that wraps
// limiter.ErrUncertain leaves open whether they are written, now or later.
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

// waited returns the next batch, for a caller that waits for it. d.mu must be locked.
func (d *disk) waited() *batch {
	n := d.batch()
	if !n.waited {
		n.waited = true
		d.signal()
	}
	return n
}

// signal wakes the writer, unless it is already awake.
func (d *disk) signal() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// close ends the writer after all requested writes. After an error it may be called again.
func (d *disk) close(ctx context.Context) error {
	d.mu.Lock()
	d.closing = true
	d.mu.Unlock()
	d.signal()
	return closed(ctx, d.ended)
}

// keep stores the buckets of a shard for finish.
func (d *disk) keep(buckets map[uint64]*bucket) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last = append(d.last, buckets)
}

// grace is how long a bucket stays after it was full and last used. A caller whose clock is behind
// by less finds the same balance in a new bucket.
const grace = time.Minute
