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
const patience = 10 * time.Millisecond

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

	turning sync.Mutex // held while usage moves from buckets to rows
	moved   moved      // rows since usage was compared with budgets
	// namespaces that the file knows are in use. The writer owns it.
	namespaces map[unique.Handle[string]]bool

	wake  chan struct{} // holds a token when there is a batch, or it is waited for, or none will come
	ended chan struct{} // closed when the writer has ended

	finished sync.Once
}

// batch is what goes into one transaction.
type batch struct {
	done    chan struct{}
	err     error // set before done is closed
	waited  bool  // somebody waits, or may
	buckets []asked
	changes []change
}

// asked is a bucket of which the file is to have a newer state.
type asked struct {
	shard  *shard
	hash   uint64
	bucket *bucket
}

// change is a record to write; a nil value deletes it.
type change struct {
	table datafile.Table
	key   []byte
	value []byte
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

// add adds a bucket, unless it is in a batch that is not taken up yet.
func (n *batch) add(sh *shard, hash uint64, b *bucket) {
	if !b.block.queued {
		b.block.queued = true
		n.buckets = append(n.buckets, asked{sh, hash, b})
	}
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

// run writes batches until close, and then what is left.
func (d *disk) run() {
	defer close(d.ended)
	patient := true
	for {
		d.mu.Lock()
		n, closing := d.next, d.closing
		due := n != nil && (n.waited || closing || !patient)
		if due {
			d.next = nil
		}
		d.mu.Unlock()
		switch {
		case due:
			d.commit(n)
			patient = true
		case closing:
			return
		case n == nil:
			<-d.wake
		default:
			patient = d.linger()
		}
	}
}

// linger waits until somebody may wait for the next batch, or patience is at an end.
func (d *disk) linger() (patient bool) {
	end := time.NewTimer(patience)
	defer end.Stop()
	select {
	case <-d.wake:
		return true
	case <-end.C:
		return false
	}
}

// close ends the writer when it has written all that was asked for.
func (d *disk) close() {
	d.mu.Lock()
	d.closing = true
	d.mu.Unlock()
	d.signal()
	<-d.ended
}

// keep keeps the buckets of a shard for finish.
func (d *disk) keep(buckets map[uint64]*bucket) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last = append(d.last, buckets)
}

// commit writes a batch and tells who waits.
func (d *disk) commit(n *batch) {
	if len(n.buckets)+len(n.changes) > 0 { // else who waits has waited for the batch before it
		d.turning.Lock()
		w := d.depart(n)
		d.land(n, w.save(d.file))
		d.moved.note(w.used)
		d.turning.Unlock()
	}
	close(n.done)
}

// writing is what a batch writes.
type writing struct {
	changes []change
	used    []usageRow
}

// depart takes the states of the buckets of a batch.
func (d *disk) depart(n *batch) writing {
	now := d.cfg.Now().UnixMilli()
	w := writing{changes: n.changes}
	for _, a := range n.buckets {
		a.shard.mu.Lock()
		if !d.namespaces[a.bucket.namespace] {
			w.changes = append(w.changes, inUse(a.bucket.namespace.Value()))
		}
		w.depart(a.bucket, now)
		a.shard.mu.Unlock()
	}
	return w
}

// depart adds what the file is to have of a bucket: its state, or nothing when it is
// to leave and may. The bucket's shard must be locked.
func (w *writing) depart(b *bucket, now int64) {
	k := b.block
	how := k.leaving
	if how == whenIdle && !b.idle(now-grace.Milliseconds()) {
		how = stays
	}
	k.queued, k.leaving = false, stays
	c := change{table: datafile.Buckets}
	var head []byte
	c.key, head = identified(b.identity())
	if how != stays {
		b.turn(k.hour)
		b.vacate(how)
	} else {
		b.launch(now)
		c.value = b.record(head, false)
	}
	w.changes = append(w.changes, c)
	w.used = b.rows(w.used)
}

func (w *writing) save(file *datafile.File) error {
	return file.Update(func(tx *datafile.Tx) error {
		for i := range w.changes {
			if err := w.changes[i].apply(tx); err != nil {
				return err
			}
		}
		return addUsage(tx, w.used)
	})
}

func (c *change) apply(tx *datafile.Tx) error {
	if c.value == nil {
		return tx.Delete(c.table, c.key)
	}
	return tx.Put(c.table, c.key, c.value)
}

// land puts what was written in force; err says that it was not, or may not be.
func (d *disk) land(n *batch, err error) {
	how := made
	switch {
	case errors.Is(err, datafile.ErrUncertain), errors.Is(err, datafile.ErrCorrupt):
		how = unknown
	case err != nil:
		how = notMade
	}
	now := d.cfg.Now().UnixMilli()
	for _, a := range n.buckets {
		a.shard.mu.Lock()
		b, k := a.bucket, a.bucket.block
		purge := k.vacated == purged
		left := b.land(how) && !k.queued && !k.unsaved() && a.shard.buckets != nil
		if left && (purge || b.full(now)) { // it is not where a limit was raised meanwhile, which fills nothing
			d.table.drop(a.shard, a.hash, b)
		}
		a.shard.mu.Unlock()
		if err == nil {
			d.namespaces[b.namespace] = true
		}
	}
	if err != nil {
		n.err = err
		d.failed(err)
	}
}
