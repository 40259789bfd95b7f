package embedded

import (
	"bytes"
	"encoding/binary"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/ratelimit/ratelimit/pkg/embedded/datafile"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

const (
	// sweepsPerInterval is how many parts a sweep is cut into.
	sweepsPerInterval = 64
	// grace is how long a bucket is kept after it was full and last touched. A caller
	// whose clock is behind by less finds in the new bucket what it would in the old.
	grace = time.Minute
)

// sweepLoop looks at every shard of buckets and of marks, and at the file, once in each
// sweep interval, until stop is closed.
func (s *Store) sweepLoop(stop <-chan struct{}) {
	defer close(s.done)
	ticker := time.NewTicker(max(s.cfg.SweepInterval/sweepsPerInterval, time.Millisecond))
	defer ticker.Stop()
	var space *compaction
	if s.disk != nil {
		space = &compaction{file: s.disk.file, log: s.cfg.Logger}
	}
	for next := 0; ; next = (next + 1) % sweepsPerInterval {
		select {
		case <-stop:
			return
		case <-ticker.C:
		}
		s.sweepPart(next, stop)
		if space != nil && next == sweepsPerInterval-1 { // after what was dropped
			space.run(s.cfg.Now())
		}
	}
}

// sweepPart sweeps one part of all, shard by shard. It waits until the file has forgotten
// what was in a shard, so that no commit is long for its sake, until stop is closed.
func (s *Store) sweepPart(part int, stop <-chan struct{}) {
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
		end = len(s.shards) // with the overflow buckets
	}
	for i := part * buckets; i < end; i++ {
		if !settled(s.sweep(i, i+1, s.cfg.Now().UnixMilli())) {
			return
		}
	}
	for i := part * marks; i < (part+1)*marks; i++ {
		if !settled(s.sweepMarks(i, i+1)) {
			return
		}
	}
	if part == 0 && s.disk != nil {
		for n := s.disk.sweepRows(s.cfg.Now()); n != nil && settled(n) && n.err == nil; {
			n = s.disk.sweepRows(s.cfg.Now())
		}
	}
}

// sweep drops the buckets, in the shards from first up to end, that are full and
// idle for as long as grace says. It returns a batch when the file forgets some of them: all
// are out of it when the batch is written.
func (s *Store) sweep(first, end int, now int64) (last *batch) {
	for i := first; i < end; i++ {
		sh := &s.shards[i]
		sh.mu.Lock()
		for hash, b := range sh.buckets {
			for b != nil {
				next := b.next
				if b.idle(now - grace.Milliseconds()) {
					if n := s.retire(sh, hash, b, now, whenIdle); n != nil {
						last = n
					}
				}
				b = next
			}
		}
		sh.mu.Unlock()
	}
	return last
}

// retire drops a bucket, at once or when the batch that it returns is written and so the
// file has forgotten it. The shard must be locked.
func (s *Store) retire(sh *shard, hash uint64, b *bucket, now int64, how leaving) *batch {
	if s.disk == nil {
		s.drop(sh, hash, b)
		return nil
	}
	if b.block == nil {
		b.block = storedBlock(b.limits, now)
	}
	switch k := b.block; {
	case how == whenIdle && (k.queued || k.flying):
		return nil // somebody uses it
	case k.stored || k.queued || k.flying || k.unsaved():
		k.leaving = how
		return s.disk.want(sh, hash, b)
	default:
		s.drop(sh, hash, b)
		return nil
	}
}

// sweepRows has the file forget usage and audit events that are too old, as many as
// sweptRows at a time. It returns the batch that does, nil for none.
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
			err = errors.Join(err, old(datafile.Usage, []byte{budgetTag(w)}, now.Add(-toldFor).Unix()))
			if age := w.Retention(); age > 0 {
				err = errors.Join(err, old(datafile.Usage, []byte{usageTag(w)}, now.Add(-age).Unix()))
			}
		}
		return errors.Join(err,
			tx.Each(datafile.Namespaces, nil, func(_, value []byte) error {
				return old(datafile.Audit, auditPrefix(namespaceIn(value)), now.Add(-d.store.cfg.AuditRetention).UnixMilli())
			}))
	})
	if err != nil {
		d.store.cfg.Logger.Warn("old usage and audit events cannot be found in the data file, and stay", slog.Any("error", err))
		return nil
	}
	if len(gone) == 0 {
		return nil
	}
	return d.ask(gone...)
}

// sweptRows keeps the commit that deletes them short.
const sweptRows = 2000

// errEnough ends an iteration.
var errEnough = errors.New("enough")

// enough makes nothing of errEnough.
func enough(err error) error {
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}
