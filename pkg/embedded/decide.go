package embedded

import "github.com/ratelimit/ratelimit/pkg/limiter"

// taker decides. It takes from buckets, and waits for the file where needed.
type taker struct {
	*table

	disk *disk // nil without a file
}

// deferredOps returns the indices of the deferred ops.
func deferredOps(held []opened) (all []int) {
	for i := range held {
		if held[i].later {
			all = append(all, i)
		}
	}
	return all
}

// try is the outcome of an attempt to decide. Without done nothing was changed.
type try struct {
	done     bool
	admitted bool
	none     bool   // of tryOne: there is no bucket, and no room for one
	later    []int  // indices of deferred ops, still to be applied
	wait     *batch // the commit to wait for before the answer or the next attempt; nil = none
}

// tryOne is tryAll for the common case of one bucket, without its bookkeeping.
func (k *taker) tryOne(now int64, op *limiter.Op) (t try, err error) {
	hash := k.hash(&op.Bucket)
	sh := &k.shards[hash%shardCount]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	b, created, err := k.open(sh, hash, now, op)
	if b == nil {
		return try{none: err == nil}, err
	}
	t.admitted = b.prepare(op, now)
	if k.disk != nil && !b.covers(op, t.admitted) {
		return try{wait: k.disk.want(sh, hash, b)}, nil
	}
	t.done, t.wait = true, k.apply(op, &opened{shard: sh, hash: hash, bucket: b}, now, t.admitted)
	if created && b.unused(now) {
		k.drop(sh, hash, b)
	}
	return t, nil
}

// apply applies an op to its bucket, and requests the next block where one is due. It returns the
// batch that the answer must wait for, nil for none.
func (k *taker) apply(op *limiter.Op, h *opened, now int64, admitted bool) *batch {
	if k.disk == nil {
		h.bucket.finish(op, admitted)
		return nil
	}
	low, over := h.bucket.account(op, now, admitted)
	if over {
		return k.disk.want(h.shard, h.hash, h.bucket)
	}
	if low {
		k.disk.renew(h.shard, h.hash, h.bucket)
	}
	return nil
}

// tryAll decides over several buckets under the locks of all of them. With a file each of them must
// cover its op. The deferred ops are not applied.
func (k *taker) tryAll(now int64, ops []limiter.Op) (t try, err error) {
	var fixed [16]opened
	held := fixed[:0]
	for i := range ops {
		held = append(held, opened{hash: k.hash(&ops[i].Bucket)})
	}
	var few [17]uint16
	indices, err := k.openAll(few[:0], held, ops, now)
	defer k.unlock(indices)
	if err != nil {
		k.dropUnused(held, now)
		return try{}, err
	}
	t.admitted = true
	for i := range ops {
		if !held[i].bucket.prepare(&ops[i], now) {
			t.admitted = false
		}
	}
	for i := range ops {
		h := &held[i]
		if k.disk != nil && !h.none && !h.bucket.covers(&ops[i], t.admitted) {
			// Requests under the same locks are in one batch, or later ones in a later batch. So it is
			// enough to wait for the last one before the next attempt.
			t.wait = k.disk.want(h.shard, h.hash, h.bucket)
		}
	}
	if t.wait != nil {
		return try{wait: t.wait}, nil
	}
	t.done = true
	for i := range ops {
		if held[i].none {
			continue
		}
		if wait := k.apply(&ops[i], &held[i], now, t.admitted); wait != nil {
			t.wait = wait
		}
	}
	k.dropUnused(held, now)
	t.later = deferredOps(held)
	return t, nil
}
