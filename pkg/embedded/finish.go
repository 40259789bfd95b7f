package embedded

import (
	"context"
	"errors"
	"fmt"

	"github.com/ratelimit/ratelimit/pkg/embedded/internal/record"

	"github.com/ratelimit/ratelimit/pkg/embedded/datafile"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// finishBatch is how many buckets go into one transaction at the end.
const finishBatch = 5000

// finish writes the exact state of every bucket, notes that the life ended in order, and closes the
// file. The writer has ended. What is not written when ctx is done is left as a crash leaves it.
func (d *disk) finish(ctx context.Context) error {
	err := d.writeLast(ctx)
	if err != nil {
		err = fmt.Errorf("%w: writing the last state: %w", limiter.ErrUnavailable, err)
	}
	return errors.Join(err, d.file.Close())
}

func (d *disk) writeLast(ctx context.Context) error {
	now := d.cfg.Now().UnixMilli()
	var last []writing
	most := finishBatch
	for i, buckets := range d.last {
		for _, b := range buckets {
			for ; b != nil; b = b.next {
				if w := b.last(now); len(w.changes) > 0 {
					last = append(last, w)
				}
			}
		}
		if len(last) < finishBatch && i+1 < len(d.last) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("the buckets of %d of %d shards have open blocks, which are forfeited: %w", len(d.last)-i, len(d.last), err)
		}
		var err error
		most, err = d.saveAll(ctx, last, most)
		if err != nil {
			return err
		}
		last = last[:0]
	}
	w := writing{changes: []change{{table: datafile.Meta, key: []byte(metaRunning)}}}
	return w.save(d.file)
}

// saveAll writes some, at most so many in one transaction. Where the disk has no room for them it writes fewer at a time: each
// transaction makes room for the next. It returns how many fit.
func (d *disk) saveAll(ctx context.Context, all []writing, most int) (int, error) {
	for len(all) > 0 {
		var w writing
		n := min(most, len(all))
		for i := range all[:n] {
			w.changes, w.used = append(w.changes, all[i].changes...), append(w.used, all[i].used...)
		}
		err := w.save(d.file)
		if ctx.Err() == nil && n > 1 && errors.Is(err, datafile.ErrFull) {
			most = max(n/4, 1)
			continue
		}
		if most < finishBatch { // it goes slowly
			err = errors.Join(err, ctx.Err())
		}
		if err != nil {
			return most, err
		}
		all = all[n:]
	}
	return most, nil
}

// last returns what the file is to have of a bucket when all has ended, if it has not: its exact
// state, or nothing when it is full. Usage stays in the bucket's record: to move it to rows takes
// several times as long, and is left to the next life.
func (b *bucket) last(now int64) (w writing) {
	k := b.block
	if k == nil || k.clean {
		return w // it is as the file has it
	}
	unsaved, full := k.unsaved(), b.full(now)
	if full && !unsaved && !k.stored {
		return w
	}
	c := change{table: datafile.Buckets}
	var head []byte
	c.key, head = record.KeyOf(b.identity())
	if !full || unsaved {
		c.value = b.record(head, true)
	}
	return writing{changes: b.marks([]change{c}), used: b.rows(nil)}
}
