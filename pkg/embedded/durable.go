package embedded

import (
	"context"
	"fmt"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// takeDurably is Take where a file bounds what may be given: what the blocks of the
// buckets do not cover waits until the file has newer ones, with nothing changed.
func (s *Store) takeDurably(ctx context.Context, now int64, ops []limiter.Op) (bool, error) {
	for {
		var admitted bool
		var pending *batch
		var err error
		if len(ops) == 1 {
			admitted, pending, err = s.tryOne(now, &ops[0])
		} else {
			admitted, pending, err = s.tryAll(now, ops)
		}
		if pending == nil || err != nil {
			return admitted, err
		}
		if err := pending.wait(ctx); err != nil {
			return false, err
		}
	}
}

// tryOne is takeOne with a file. A batch says that nothing was done, and what to wait for.
func (s *Store) tryOne(now int64, op *limiter.Op) (admitted bool, pending *batch, err error) {
	hash := s.hash(&op.Bucket)
	sh := &s.shards[hash%shardCount]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	b, created, err := s.open(sh, hash, now, op)
	if err != nil {
		return false, nil, err
	}
	gave := gives(op)
	if gave && !b.foresee(op, now) {
		return false, s.disk.want(sh, hash, b), nil
	}
	admitted = b.prepare(op, now)
	if !gave && !b.covers(op, admitted) {
		return false, s.disk.want(sh, hash, b), nil
	}
	s.book(sh, hash, b, op, admitted, gave)
	if created && !b.block.queued && b.full(now) {
		s.drop(sh, hash, b)
	}
	return admitted, nil, nil
}

// book takes what was prepared and is covered, and asks for the next block in time.
func (s *Store) book(sh *shard, hash uint64, b *bucket, op *limiter.Op, admitted, gave bool) {
	b.finish(op, admitted)
	if b.account(op, admitted, gave) && !b.block.queued && !b.block.flying {
		s.disk.want(sh, hash, b)
	}
}

// tryAll is takeAll with a file, like tryOne.
func (s *Store) tryAll(now int64, ops []limiter.Op) (admitted bool, pending *batch, err error) {
	var fixed [16]opened
	held := fixed[:0]
	for i := range ops {
		held = append(held, opened{hash: s.hash(&ops[i].Bucket)})
	}
	var few [16]uint16
	indices := shardsOf(few[:0], held)
	s.lock(indices)
	defer s.unlock(indices)

	gave := false
	for i := range ops {
		h := &held[i]
		h.bucket, h.created, err = s.open(&s.shards[h.hash%shardCount], h.hash, now, &ops[i])
		if err != nil {
			s.dropUnused(held[:i], now)
			return false, nil, err
		}
		gave = gave || gives(&ops[i])
	}
	if gave { // before anything is given
		for i := range ops {
			if !held[i].bucket.foresee(&ops[i], now) {
				pending = s.wantHeld(&held[i])
			}
		}
		if pending != nil {
			return false, pending, nil
		}
	}
	admitted = true
	for i := range ops {
		if !held[i].bucket.prepare(&ops[i], now) {
			admitted = false
		}
	}
	for i := range ops {
		if !gave && !held[i].bucket.covers(&ops[i], admitted) {
			pending = s.wantHeld(&held[i])
		}
	}
	if pending != nil {
		return false, pending, nil
	}
	for i := range ops {
		h := &held[i]
		s.book(&s.shards[h.hash%shardCount], h.hash, h.bucket, &ops[i], admitted, gave)
	}
	s.dropUnused(held, now)
	return admitted, nil, nil
}

// wantHeld asks for a block. All that are asked for while the locks are held are in
// one batch, or the later ones are in a later one: waiting for the last is enough to
// look again.
func (s *Store) wantHeld(h *opened) *batch {
	return s.disk.want(&s.shards[h.hash%shardCount], h.hash, h.bucket)
}

// dropUnused removes the buckets that this decision created and left full.
func (s *Store) dropUnused(held []opened, now int64) {
	for _, h := range held {
		if h.created && !h.bucket.block.queued && h.bucket.full(now) {
			s.drop(&s.shards[h.hash%shardCount], h.hash, h.bucket)
		}
	}
}

// wait waits until the batch is in the file.
func (b *batch) wait(ctx context.Context) error {
	select {
	case <-b.done:
		return b.err
	case <-ctx.Done():
		return fmt.Errorf("%w: waiting for the data file: %w", limiter.ErrUnavailable, ctx.Err())
	}
}
