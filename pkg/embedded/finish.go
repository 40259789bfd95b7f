package embedded

import (
	"errors"
	"fmt"

	"github.com/ratelimit/ratelimit/pkg/embedded/internal/record"

	"github.com/ratelimit/ratelimit/pkg/embedded/datafile"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// finishBatch is how many buckets go into one transaction at the end.
const finishBatch = 10_000

// finish ends the writer, writes the exact state of every bucket, notes that the life
// ended in order, and closes the file.
func (d *disk) finish() error {
	d.close()
	now := d.cfg.Now().UnixMilli()
	var w writing
	var err error
	for _, buckets := range d.last {
		for _, b := range buckets {
			for ; b != nil && err == nil; b = b.next {
				w.finish(b, now)
				if len(w.changes) >= finishBatch {
					err = w.save(d.file)
					w = writing{}
				}
			}
		}
	}
	if err == nil {
		w.changes = append(w.changes, change{table: datafile.Meta, key: []byte(metaRunning)})
		err = w.save(d.file)
	}
	if err != nil {
		err = fmt.Errorf("%w: writing the last state: %w", limiter.ErrUnavailable, err)
	}
	return errors.Join(err, d.file.Close())
}

// finish adds what the file is to have of a bucket when all has ended, if it has not: its
// exact state, or nothing when it is full.
func (w *writing) finish(b *bucket, now int64) {
	if b.block == nil {
		b.block = storedBlock(b.limits, now)
	}
	k, full := b.block, b.full(now)
	if k.clean && !full || !k.stored && !k.unsaved() {
		return
	}
	c := change{table: datafile.Buckets}
	var head []byte
	if c.key, head = record.KeyOf(b.identity()); full {
		b.turn(k.hour)
	} else {
		c.value = b.record(head, true)
	}
	w.changes = append(w.changes, c)
	w.used = b.rows(w.used)
}
