package embedded

import (
	"fmt"
	"sync"

	"github.com/ratelimit/ratelimit/pkg/embedded/datafile"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// disk writes to the file, in groups: whatever is asked for while one transaction is
// under way goes into the next, and there is no timer.
type disk struct {
	store *Store
	file  *datafile.File

	mu      sync.Mutex
	next    *batch // nil = nothing is asked for
	closing bool

	wake  chan struct{} // holds a token when there is a batch, or none will come
	ended chan struct{} // closed when the writer has ended

	finished sync.Once
}

// batch is what goes into one transaction.
type batch struct {
	done    chan struct{}
	err     error // set before done is closed
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

func newDisk(s *Store, file *datafile.File) *disk {
	return &disk{store: s, file: file, wake: make(chan struct{}, 1), ended: make(chan struct{})}
}

// want asks for a newer state of a bucket, and returns the batch that it will be in.
// The bucket's shard must be locked.
func (d *disk) want(sh *shard, hash uint64, b *bucket) *batch {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.batch()
	if !b.block.queued {
		b.block.queued = true
		n.buckets = append(n.buckets, asked{sh, hash, b})
	}
	return n
}

// write asks for changes, in this order, and returns the batch that they will be in.
func (d *disk) write(changes ...change) *batch {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.batch()
	n.changes = append(n.changes, changes...)
	return n
}

// batch returns the next batch. d.mu must be locked.
func (d *disk) batch() *batch {
	if d.next == nil {
		d.next = &batch{done: make(chan struct{})}
		if d.closing {
			d.next.err = limiter.ErrClosed
			close(d.next.done)
			gone := d.next
			d.next = nil
			return gone
		}
		select {
		case d.wake <- struct{}{}:
		default: // it is awake already
		}
	}
	return d.next
}

// run writes batches until close, and then what is left.
func (d *disk) run() {
	defer close(d.ended)
	for {
		<-d.wake
		for {
			d.mu.Lock()
			n, closing := d.next, d.closing
			d.next = nil
			d.mu.Unlock()
			if n == nil {
				if closing {
					return
				}
				break
			}
			d.commit(n)
		}
	}
}

// close ends the writer when it has written all that was asked for.
func (d *disk) close() {
	d.mu.Lock()
	if d.closing {
		d.mu.Unlock()
		return
	}
	d.closing = true
	d.mu.Unlock()
	select {
	case d.wake <- struct{}{}:
	default:
	}
	<-d.ended
}

// commit writes a batch and tells who waits.
func (d *disk) commit(n *batch) {
	if len(n.buckets)+len(n.changes) == 0 { // who waits has waited for the batch before it
		close(n.done)
		return
	}
	now := d.store.cfg.Now().UnixMilli()
	changes := n.changes
	var used []usageRow
	for i := range n.buckets {
		a := &n.buckets[i]
		a.shard.mu.Lock()
		used = a.bucket.turn(used, hourOf(now))
		changes = append(changes, a.bucket.depart(now))
		a.shard.mu.Unlock()
	}
	err := d.file.Update(func(tx *datafile.Tx) error {
		for _, c := range changes {
			if err := c.apply(tx); err != nil {
				return err
			}
		}
		return addUsage(tx, used)
	})
	for i := range n.buckets {
		a := &n.buckets[i]
		a.shard.mu.Lock()
		a.bucket.turned(err != nil)
		a.bucket.land(err != nil)
		if k := a.bucket.block; k.leaving && !k.queued && err == nil && a.shard.buckets != nil {
			d.store.drop(a.shard, a.hash, a.bucket)
		}
		a.bucket.block.leaving = false
		a.shard.mu.Unlock()
	}
	if err != nil {
		n.err = fmt.Errorf("%w: %w", limiter.ErrUnavailable, err)
		d.store.failed(err)
	}
	close(n.done)
}

func (c *change) apply(tx *datafile.Tx) error {
	if c.value == nil {
		return tx.Delete(c.table, c.key)
	}
	return tx.Put(c.table, c.key, c.value)
}

// depart returns what the file is to have of the bucket: its state, or nothing when it
// is to leave and may. The shard must be locked.
func (b *bucket) depart(now int64) change {
	c := change{table: datafile.Buckets}
	var head []byte
	c.key, head = identified(b.identity())
	if b.block.leaving = b.block.leaving && b.idle(now-grace.Milliseconds()); b.block.leaving {
		b.block.vacate()
		return c
	}
	b.launch(now)
	c.value = b.record(head, false)
	return c
}

// vacate covers nothing from now on: the file forgets the bucket.
func (k *block) vacate() {
	k.queued, k.flying, k.stored = false, true, false
	for i := range k.spans {
		s := &k.spans[i]
		s.size, s.spent, s.nextSize, s.nextSpent, s.need = 0, 0, 0, 0, 0
	}
}
