package embedded

import (
	"context"
	"fmt"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Take implements limiter.Store.
func (k *taker) Take(ctx context.Context, now time.Time, ops []limiter.Op) (bool, error) {
	if ctx.Err() != nil {
		return false, contextErr(ctx)
	}
	if k.disk != nil {
		return k.takeDurably(ctx, now.UnixMilli(), ops)
	}
	if len(ops) == 1 {
		if admitted, done, err := k.takeOne(now.UnixMilli(), &ops[0]); done || err != nil {
			return admitted, err
		}
	}
	return k.takeAll(now.UnixMilli(), ops)
}

// takeDurably is Take with a file. A take beyond the blocks of its buckets waits until the file has
// newer ones. Until then nothing is changed.
func (k *taker) takeDurably(ctx context.Context, now int64, ops []limiter.Op) (bool, error) {
	for {
		var t try
		var err error
		if len(ops) == 1 {
			t, err = k.tryOne(now, &ops[0])
		}
		if len(ops) > 1 || t.none {
			t, err = k.tryAll(now, ops)
		}
		if err != nil {
			return t.admitted, err
		}
		if t.wait != nil {
			err = t.wait.wait(ctx)
		}
		if t.done { // also after an error of the file: the tokens are taken
			return t.admitted, k.chargeDeferred(ctx, now, ops, t.later)
		}
		if err == nil { // the caller may have gone in the meantime
			err = contextErr(ctx)
		}
		if err != nil {
			return false, err
		}
	}
}

// chargeDeferred applies the deferred ops, also for a caller that has gone.
func (k *taker) chargeDeferred(ctx context.Context, now int64, ops []limiter.Op, later []int) error {
	for _, i := range later {
		if _, err := k.takeDurably(context.WithoutCancel(ctx), now, ops[i:i+1]); err != nil {
			return fmt.Errorf("%w: a charge: %w", limiter.ErrUncertain, err)
		}
	}
	return nil
}

// try is the outcome of an attempt to decide. Without done nothing was changed.
type try struct {
	done     bool
	admitted bool
	none     bool   // of tryOne: there is no bucket, and no room for one
	later    []int  // indices of deferred ops, still to be applied
	wait     *batch // the commit to wait for before the answer or the next attempt; nil = none
}

// tryOne is takeOne with a file.
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
	if !b.covers(op, t.admitted) {
		return try{wait: k.disk.want(sh, hash, b)}, nil
	}
	t.done = true
	if low, over := b.account(op, now, t.admitted); low || over {
		t.wait = k.more(&opened{shard: sh, hash: hash, bucket: b}, over)
	}
	if created && b.unused(now) {
		k.drop(sh, hash, b)
	}
	return t, nil
}

// more requests the next block. It returns the batch that the answer must wait for, nil for none.
func (k *taker) more(h *opened, over bool) *batch {
	if over {
		return k.wantHeld(h)
	}
	k.disk.renew(h.shard, h.hash, h.bucket)
	return nil
}

// tryAll is takeAll with a file, like tryOne.
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
		if !held[i].none && !held[i].bucket.covers(&ops[i], t.admitted) {
			t.wait = k.wantHeld(&held[i])
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
		low, over := held[i].bucket.account(&ops[i], now, t.admitted)
		if !low && !over {
			continue
		}
		if wait := k.more(&held[i], over); wait != nil {
			t.wait = wait
		}
	}
	k.dropUnused(held, now)
	t.later = deferredOps(held)
	return t, nil
}

// wantHeld requests a block. Requests under the same locks are in one batch, or later ones in a
// later batch. So it is enough to wait for the last one before the next attempt.
func (k *taker) wantHeld(h *opened) *batch {
	return k.disk.want(h.shard, h.hash, h.bucket)
}
