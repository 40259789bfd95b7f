package embedded

import "time"

// sweepsPerInterval is how many parts a sweep is cut into.
const sweepsPerInterval = 64

// sweepLoop looks at every shard once in each sweep interval, until stop is closed.
func (s *Store) sweepLoop(stop <-chan struct{}) {
	defer close(s.done)
	ticker := time.NewTicker(max(s.cfg.SweepInterval/sweepsPerInterval, time.Millisecond))
	defer ticker.Stop()
	for next := 0; ; next = (next + 1) % sweepsPerInterval {
		select {
		case <-stop:
			return
		case <-ticker.C:
		}
		const part = shardCount / sweepsPerInterval
		s.sweep(next*part, (next+1)*part, s.cfg.Now().UnixMilli())
	}
}

// sweep drops the full buckets of the shards from first up to end.
func (s *Store) sweep(first, end int, now int64) {
	for i := first; i < end; i++ {
		sh := &s.shards[i]
		sh.mu.Lock()
		for hash, b := range sh.buckets {
			for b != nil {
				next := b.next
				if b.full(now) {
					s.drop(sh, hash, b)
				}
				b = next
			}
		}
		sh.mu.Unlock()
	}
}
