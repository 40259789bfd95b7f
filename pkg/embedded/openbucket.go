package embedded

import "github.com/ratelimit/ratelimit/pkg/limiter"

// open returns the bucket of op, with op's limits if they are newer, and creates it if needed. It
// returns nil when there is no room. The shard must be locked.
func (t *table) open(sh *shard, hash uint64, now int64, op *limiter.Op) (b *bucket, created bool, err error) {
	if sh.buckets == nil {
		return nil, false, limiter.ErrClosed
	}
	first := sh.buckets[hash]
	for b = first; b != nil; b = b.next {
		if b.is(&op.Bucket) {
			if t.durable && b.block == nil {
				b.block = storedBlock(b.limits, now)
			}
			if b.limits != op.Limits || b.generation < op.Generation {
				b.applyLimits(op.Limits, op.Generation, now)
			}
			return b, false, nil
		}
	}
	if n := t.buckets.Add(1); n > t.cfg.MaxBuckets {
		t.buckets.Add(-1)
		return nil, false, nil
	}
	b = t.newBucket(op, now)
	if t.overflow.held.Load() > 0 {
		t.inherit(b, op, now)
	}
	b.next = first
	sh.buckets[hash] = b
	return b, true, nil
}

// openAll locks the shards of the buckets of ops, and opens the buckets. It appends the indices of
// the locked shards, also on an error.
func (t *table) openAll(indices []uint16, held []opened, ops []limiter.Op, now int64) ([]uint16, error) {
	indices = shardsOf(indices, held)
	t.lock(indices)
	missing := false
	for i := range ops {
		h := &held[i]
		var err error
		h.shard = &t.shards[h.hash%shardCount]
		h.bucket, h.created, err = t.open(h.shard, h.hash, now, &ops[i])
		if err != nil {
			return indices, err
		}
		missing = missing || h.bucket == nil
	}
	if !missing {
		return indices, nil
	}
	t.lock([]uint16{overflowShard})
	indices = append(indices, overflowShard)
	for i := range ops {
		if held[i].bucket != nil {
			continue
		}
		h, err := t.openShared(now, &ops[i], held[:i])
		held[i] = h
		if err != nil {
			return indices, err
		}
	}
	return indices, nil
}

// dropUnused removes the buckets that this decision created and left full, unless the file must
// have them.
func (t *table) dropUnused(held []opened, now int64) {
	for _, h := range held {
		if h.created && h.bucket.unused(now) {
			t.drop(h.shard, h.hash, h.bucket)
		}
	}
}
