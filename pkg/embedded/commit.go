package embedded

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/ratelimit/ratelimit/pkg/embedded/datafile"
)

// run writes batches until close, and then the last one.
func (d *disk) run() {
	defer close(d.ended)
	mayWait := true
	for {
		d.mu.Lock()
		n, closing := d.next, d.closing
		due := n != nil && (n.waited || closing || !mayWait)
		if due {
			d.next = nil
		}
		d.mu.Unlock()
		switch {
		case due:
			d.commit(n)
			mayWait = true
		case closing:
			return
		case n == nil:
			<-d.wake
		default:
			mayWait = d.waitForMore()
		}
	}
}

// waitForMore waits until a caller may wait for the next batch, or renewDelay has passed. It
// reports whether the batch may wait longer.
func (d *disk) waitForMore() (mayWait bool) {
	end := time.NewTimer(renewDelay)
	defer end.Stop()
	select {
	case <-d.wake:
		return true
	case <-end.C:
		return false
	}
}

// commit writes a batch and wakes its callers.
func (d *disk) commit(n *batch) {
	if len(n.buckets)+len(n.changes) > 0 { // else the callers have waited for the batch before it
		d.moving.Lock()
		w := d.collect(n)
		d.conclude(n, w.save(d.file))
		d.moved.note(w.used)
		d.moving.Unlock()
	}
	close(n.done)
}

// writing is the changes and the usage that a batch writes.
type writing struct {
	changes []change
	used    []usageRow
}

// collect takes the states of the buckets of a batch.
func (d *disk) collect(n *batch) writing {
	now := d.cfg.Now().UnixMilli()
	w := writing{changes: n.changes}
	for _, a := range n.buckets {
		a.shard.mu.Lock()
		if !d.namespaces[a.bucket.namespace] {
			w.changes = append(w.changes, inUse(a.bucket.namespace.Value()))
		}
		w.add(a.bucket, now)
		a.shard.mu.Unlock()
	}
	return w
}

// add adds the change of a bucket: its state, or the deletion of its record. The bucket's shard
// must be locked.
func (w *writing) add(b *bucket, now int64) {
	k := b.block
	how, since := k.onCommit, now-grace.Milliseconds()
	if how == commitDrop && !b.idle(since) || how == commitClose && !b.closable(since) {
		how = commitOpen
	}
	k.queued, k.onCommit = false, commitOpen
	c := change{table: datafile.Buckets}
	var head []byte
	c.key, head = keyOf(b.identity())
	switch how {
	case commitOpen:
		b.openBlock(now)
		c.value = b.record(head, false)
	case commitClose:
		b.closeBlock(now)
		c.value = b.record(head, true)
	case commitDrop, commitPurge:
		b.endHour(k.hour)
		b.block.deleteRecord(how)
	}
	w.changes = b.block.writeMarks(append(w.changes, c))
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

// conclude applies the outcome of a commit; err is its error.
func (d *disk) conclude(n *batch, err error) {
	how := committed
	switch {
	case errors.Is(err, datafile.ErrUncertain), errors.Is(err, datafile.ErrCorrupt): // rule: a corrupt commit has an unknown outcome
		how = unknown
	case err != nil:
		how = notCommitted
	}
	now := d.cfg.Now().UnixMilli()
	for _, a := range n.buckets {
		a.shard.mu.Lock()
		b, k := a.bucket, a.bucket.block
		purge := k.deleting == commitPurge
		left := b.conclude(how) && !k.queued && !k.unsaved() && a.shard.buckets != nil
		if left && (purge || b.full(now)) { // a bucket whose limit was raised in between may not be full
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

// failed counts a failed transaction, and logs at most one a second.
func (d *disk) failed(err error) {
	d.commitErrors.Add(1)
	now := d.cfg.Now().Unix()
	if last := d.failedAt.Swap(now); last == now {
		return
	}
	d.cfg.Logger.LogAttrs(context.Background(), slog.LevelError, "the data file cannot be written: requests beyond open blocks fail", slog.Any("error", err))
}
