package embedded

import (
	"context"
	"errors"
	"fmt"

	"github.com/ratelimit/ratelimit/pkg/embedded/datafile"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// finishBatch is the number of buckets in one transaction of finish.
const finishBatch = 5000

// finish writes the exact state of every bucket, records the clean shutdown, and closes the file.
// The writer has ended. Buckets that are not written when ctx is done keep their open blocks, as
// after a crash.
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
				if w := lastOf(b, now); len(w.changes) > 0 {
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

// saveAll writes several changes, at most so many in one transaction. If the disk has no room it
// writes fewer at a time: each transaction frees space for the next. It returns the number that
// fit.
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
		if most < finishBatch { // the disk is nearly full, which takes long
			err = errors.Join(err, ctx.Err())
		}
		if err != nil {
			return most, err
		}
		all = all[n:]
	}
	return most, nil
}

// lastOf returns the last write of a bucket, empty if the file has its state. It is the exact state,
// or the deletion of a full bucket. Usage stays in the bucket's record: moving it to rows takes
// several times as long, and the next run does it.
func lastOf(b *bucket, now int64) (w writing) {
	k := b.block
	if k == nil || k.clean {
		return w // the file has its state
	}
	unsaved, full := k.unsaved(), b.full(now)
	if full && !unsaved && !k.stored {
		return w
	}
	c := change{table: datafile.Buckets}
	var head []byte
	c.key, head = keyOf(b.identity())
	if !full || unsaved {
		c.value = b.record(head, true)
	}
	return writing{changes: k.writeMarks([]change{c}), used: b.rows(nil)}
}
