package embedded

import (
	"errors"
	"math"

	"github.com/ratelimit/ratelimit/pkg/embedded/datafile"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// applyRecovery recovers the buckets of a new run by the world's rule.
func (w *world) applyRecovery(s *Store) {
	w.t.Helper()
	if w.ways.recover == nil {
		return
	}
	err := s.disk.file.View(func(tx *datafile.Tx) error {
		return tx.Each(datafile.Buckets, nil, func(key, value []byte) error {
			r, err := parseBucket(key, value, make(map[string]*limiter.Limits))
			if err != nil {
				return err
			}
			w.ways.recover(&r, w.clock())
			b := bucketOf(s, r.key())
			b.first, b.rest, b.block = r.first, r.rest, r.block
			return nil
		})
	})
	if err != nil {
		w.fatalf("reading the buckets: %v", err)
	}
}

// refillLast subtracts the block from the record, and then refills.
func refillLast(r *restored, now int64) {
	for i, size := range r.sizes {
		if !r.limits.Unlimited(i) {
			t := r.balance(i)
			t.Tokens -= size
			*t = refillAt(*t, r.limits.Params(i), now)
		}
	}
}

// forgetBlocks subtracts nothing.
func forgetBlocks(r *restored, now int64) {
	clear(r.sizes)
	r.recover(now)
}

// reopenBlocks opens the blocks that recovery has subtracted.
func reopenBlocks(r *restored, now int64) {
	r.recover(now)
	if r.block == nil {
		return
	}
	for i, size := range r.sizes {
		s := r.block.span(i)
		s.size, s.nextSize = size, size
	}
}

// covering gives tokens beyond the blocks of some buckets as if one part of the span covered them.
func covering(some func(*block) bool, part func(*span)) ways {
	w := asTheyAre()
	take := w.take
	w.take = func(s *Store, now int64, ops []limiter.Op) (try, error) {
		t, err := take(s, now, ops)
		if err != nil || t.done {
			return t, err
		}
		var undo []func()
		for i := range ops {
			b := bucketOf(s, &ops[i].Bucket)
			if !some(b.block) {
				continue
			}
			for j := range b.limits.Len() {
				sp := b.block.span(j)
				size, nextSize, ask := sp.size, sp.nextSize, sp.renewAt
				part(sp)
				undo = append(undo, func() { sp.size, sp.nextSize, sp.renewAt = size, nextSize, ask })
			}
		}
		t, err = take(s, now, ops)
		for _, u := range undo {
			u()
		}
		return t, err
	}
	return w
}

func theStateInTheFile(s *span) { s.size = math.MaxInt64 }
func theNextState(s *span)      { s.nextSize = math.MaxInt64 }
func both(s *span)              { theStateInTheFile(s); theNextState(s) }

// keepCover leaves a block open when the parameters of its limit change.
func keepCover(s *Store, now int64, ops []limiter.Op) (try, error) {
	for i := range ops {
		b := bucketOf(s, &ops[i].Bucket)
		if b == nil || b.block == nil {
			continue
		}
		from := b.limits
		old := make([]span, 0, from.Len())
		for j := range from.Len() {
			old = append(old, *b.block.span(j))
		}
		b.applyLimits(ops[i].Limits, ops[i].Generation, now)
		if b.limits == from {
			continue
		}
		for j := range from.Len() {
			if to := b.limits.Find(from.At(j).Name); to >= 0 && !b.limits.Unlimited(to) {
				*b.block.span(to) = old[j]
			}
		}
	}
	return asTheyAre().take(s, now, ops)
}

// answerAtOnce answers every call without a wait for the file.
func answerAtOnce(s *Store, now int64, ops []limiter.Op) (try, error) {
	t, err := asTheyAre().take(s, now, ops)
	if t.done {
		t.wait = nil
	}
	return t, err
}

// dropAnyway drops buckets that were idle when they were swept, even if they were used since.
func dropAnyway(s *Store, now int64) {
	s.sweep(0, shardCount, now)
	for i := range s.shards {
		for _, b := range s.shards[i].buckets {
			for ; b != nil; b = b.next {
				if b.block != nil && b.block.onCommit == commitDrop {
					b.block.onCommit = commitPurge
				}
			}
		}
	}
}

// takeItAsMade treats a commit of unknown outcome as made.
func takeItAsMade(err error) error {
	if errors.Is(err, datafile.ErrUncertain) {
		return nil
	}
	return err
}
