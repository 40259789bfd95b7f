package embedded

import (
	"bytes"
	"encoding/binary"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/ratelimit/ratelimit/pkg/embedded/datafile"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// sweepsPerInterval is the number of parts of a sweep.
const sweepsPerInterval = 64

// sweeper drops full buckets, expired marks, and old rows of the file.
type sweeper struct {
	*table

	settlements *settlements
	disk        *disk         // nil without a file
	stop        func()        // ends the sweeper; may be called again
	done        chan struct{} // closed when the sweeper has ended
}

func newSweeper(t *table, s *settlements, d *disk) *sweeper {
	return &sweeper{table: t, settlements: s, disk: d, done: make(chan struct{})}
}

// start starts the sweeper. stop ends it.
func (w *sweeper) start() {
	stop := make(chan struct{})
	w.stop = sync.OnceFunc(func() { close(stop) })
	go w.sweepLoop(stop)
}

// sweepLoop sweeps every shard of buckets and of marks, and the file, once in each sweep interval,
// until stop is closed.
func (w *sweeper) sweepLoop(stop <-chan struct{}) {
	defer close(w.done)
	ticker := time.NewTicker(max(w.cfg.SweepInterval/sweepsPerInterval, time.Millisecond))
	defer ticker.Stop()
	var space *compaction
	if w.disk != nil {
		space = &compaction{file: w.disk.file, log: w.cfg.Logger}
	}
	for next := 0; ; next = (next + 1) % sweepsPerInterval {
		select {
		case <-stop:
			return
		case <-ticker.C:
		}
		w.sweepPart(next, stop)
		if space != nil && next == sweepsPerInterval-1 { // after the other deletions
			space.run(stop, w.cfg.Now())
		}
	}
}

// sweepPart sweeps one part of all, shard by shard, until stop is closed. It waits for the commit
// of each shard's deletions, so that no commit takes long.
func (w *sweeper) sweepPart(part int, stop <-chan struct{}) {
	settled := func(n *batch) bool {
		if n == nil {
			return true
		}
		select {
		case <-n.done:
			return true
		case <-stop:
			return false
		}
	}
	const buckets, marks = shardCount / sweepsPerInterval, markShards / sweepsPerInterval
	end := (part + 1) * buckets
	if part == sweepsPerInterval-1 {
		end = len(w.shards) // with the overflow buckets
	}
	for i := part * buckets; i < end; i++ {
		if !settled(w.sweep(i, i+1, w.cfg.Now().UnixMilli())) {
			return
		}
	}
	for i := part * marks; i < (part+1)*marks; i++ {
		if !settled(w.settlements.sweepMarks(i, i+1)) {
			return
		}
	}
	if part == 0 && w.disk != nil {
		for n := w.disk.sweepRows(w.cfg.Now()); n != nil && settled(n) && n.err == nil; {
			n = w.disk.sweepRows(w.cfg.Now())
		}
	}
}

// sweep drops the buckets, in the shards from first up to end, that have been full and idle for
// grace. It returns the last batch that deletes some of them from the file.
func (w *sweeper) sweep(first, end int, now int64) (last *batch) {
	for i := first; i < end; i++ {
		sh := &w.shards[i]
		sh.mu.Lock()
		for hash, b := range sh.buckets {
			for b != nil {
				next := b.next
				var n *batch
				if since := now - grace.Milliseconds(); b.idle(since) {
					n = w.remove(sh, hash, b, now, commitDrop)
				} else if !b.touched(since) {
					n = w.closeBlock(sh, hash, b)
				}
				if n != nil {
					last = n
				}
				b = next
			}
		}
		sh.mu.Unlock()
	}
	return last
}

// remove drops a bucket, at once or when the returned batch has deleted its record. The shard must
// be locked.
func (w *sweeper) remove(sh *shard, hash uint64, b *bucket, now int64, how commitKind) *batch {
	if w.disk == nil {
		w.drop(sh, hash, b)
		return nil
	}
	if b.block == nil {
		b.block = storedBlock(b.limits, now)
	}
	switch k := b.block; {
	case how == commitDrop && (k.queued || k.inFlight):
		return nil // in use
	case k.stored || k.queued || k.inFlight || k.unsaved():
		k.onCommit = how
		return w.disk.want(sh, hash, b)
	default:
		w.drop(sh, hash, b)
		return nil
	}
}

// closeBlock closes the block of an unused bucket in the file, so that a shutdown need not. It
// returns the batch that does, nil for none. The shard must be locked.
func (w *sweeper) closeBlock(sh *shard, hash uint64, b *bucket) *batch {
	k := b.block
	if w.disk == nil || k == nil || k.clean || !k.stored || k.queued || k.inFlight {
		return nil
	}
	k.onCommit = commitClose
	return w.disk.want(sh, hash, b)
}

// sweepRows deletes old usage and audit events from the file, at most about sweptRows at a time. It
// returns the batch that does, nil for none.
func (d *disk) sweepRows(now time.Time) *batch {
	var gone []change
	err := d.file.View(func(tx *datafile.Tx) error {
		old := func(t datafile.Table, prefix []byte, before int64) error {
			end := binary.BigEndian.AppendUint64(slices.Clip(prefix), uint64(before)) // #nosec G115 -- sorts all times that count
			err := tx.Each(t, prefix, func(key, _ []byte) error {
				if len(gone) >= sweptRows || bytes.Compare(key, end) >= 0 {
					return errEnough
				}
				gone = append(gone, change{table: t, key: slices.Clone(key)})
				return nil
			})
			return enough(err)
		}
		var err error
		for _, w := range limiter.UsageWindows() {
			err = errors.Join(err, old(datafile.Usage, []byte{budgetTag(w)}, now.Add(-reportedAge).Unix()))
			if age := w.Retention(); age > 0 {
				err = errors.Join(err, old(datafile.Usage, []byte{usageTag(w)}, w.Start(now.Add(-age)).Unix())) // those of earlier windows
			}
		}
		return errors.Join(err,
			tx.Each(datafile.Namespaces, nil, func(_, value []byte) error {
				return old(datafile.Audit, auditPrefix(namespaceIn(value)), now.Add(-d.cfg.AuditRetention).UnixMilli())
			}))
	})
	if err != nil {
		d.cfg.Logger.Warn("the data file cannot be searched for old usage and audit events: they are not deleted", slog.Any("error", err))
		return nil
	}
	if len(gone) == 0 {
		return nil
	}
	return d.ask(gone...)
}
