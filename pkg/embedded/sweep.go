package embedded

import "time"

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
		const part = shardCount / sweepsPerInterval
		s.sweep(next*part, (next+1)*part, s.cfg.Now().UnixMilli())
		const marksPart = markShards / sweepsPerInterval
		s.sweepMarks(next*marksPart, (next+1)*marksPart)
		if space != nil && next == sweepsPerInterval-1 { // after what was dropped
			space.run(s.cfg.Now())
		}
	}
}

// sweep drops the buckets, in the shards from first up to end, that are full and
// idle for as long as grace says.
func (s *Store) sweep(first, end int, now int64) {
	for i := first; i < end; i++ {
		sh := &s.shards[i]
		sh.mu.Lock()
		for hash, b := range sh.buckets {
			for b != nil {
				next := b.next
				if b.idle(now - grace.Milliseconds()) {
					s.retire(sh, hash, b, now)
				}
				b = next
			}
		}
		sh.mu.Unlock()
	}
}

// retire drops a bucket that is idle, once the file has forgotten it. The shard must
// be locked.
func (s *Store) retire(sh *shard, hash uint64, b *bucket, now int64) {
	if s.disk == nil {
		s.drop(sh, hash, b)
		return
	}
	if b.block == nil {
		b.block = storedBlock(b.limits, now)
	}
	switch k := b.block; {
	case k.queued, k.flying:
	case k.stored || k.unsaved():
		k.leaving = true
		s.disk.want(sh, hash, b)
	default:
		s.drop(sh, hash, b)
	}
}
