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

// takeDurably is Take where a file bounds what may be given: what the blocks of the
// buckets do not cover waits until the file has newer ones, with nothing changed.
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
		if t.done { // whatever the file says: it is taken
			return t.admitted, k.chargeDeferred(ctx, now, ops, t.later)
		}
		if err == nil { // its caller may have left meanwhile
			err = contextErr(ctx)
		}
		if err != nil {
			return false, err
		}
	}
}

// chargeDeferred books the ops that are for later, also for a caller that has left.
func (k *taker) chargeDeferred(ctx context.Context, now int64, ops []limiter.Op, later []int) error {
	for _, i := range later {
		if _, err := k.takeDurably(context.WithoutCancel(ctx), now, ops[i:i+1]); err != nil {
			return fmt.Errorf("%w: a charge: %w", limiter.ErrUncertain, err)
		}
	}
	return nil
}

// try is how a decision went: it was made, or nothing was done.
type try struct {
	done     bool
	admitted bool
	none     bool   // by tryOne: there is no bucket, and no room for one
	later    []int  // ops that are still to be booked
	wait     *batch // before it is answered, or tried again; nil = neither
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

// more asks for the next block in time. Where the answer must wait for the file it
// returns for what.
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

// wantHeld asks for a block. All that are asked for while the locks are held are in
// one batch, or the later ones are in a later one: waiting for the last is enough to
// look again.
func (k *taker) wantHeld(h *opened) *batch {
	return k.disk.want(h.shard, h.hash, h.bucket)
}
