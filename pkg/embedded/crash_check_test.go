package embedded

import (
	"github.com/ratelimit/ratelimit/pkg/embedded/datafile"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// checkCrash holds a life against the one before, which had everything in memory when
// it ended, at was by its clock.
func (w *world) checkCrash(old, now *Store, was int64, steady bool) {
	w.t.Helper()
	before, after := old.copies(), now.copies()
	sizes := w.sizes(now)
	for id, o := range before {
		n := after[id]
		if n == nil {
			tn := w.tenant(o.key())
			if forgotten := tn.changed && !tn.given; tn.taken && !o.full(was) && !forgotten { // when it was full, under other limits
				w.fatalf("bucket %s, which was not full, is gone", o.entity)
			}
			continue
		}
		if !w.heard(n) {
			if tn := w.tenant(o.key()); tn.given {
				w.fatalf("bucket %s gave under limits that the file knows nothing of", o.entity)
			}
			continue
		}
		for i := range n.limits.Len() {
			if !n.limits.Unlimited(i) {
				w.checkBalance(o, n, i, was, steady, sizes[id][i])
			}
		}
		w.checkBelow(n)
	}
	for id, n := range after {
		if before[id] == nil {
			w.checkBelow(n)
		}
	}
	w.checkReport(now, sizes)
}

// heard reports whether the file had the limits that the bucket was under in the life
// before.
func (w *world) heard(n *bucket) bool {
	tn := w.tenant(n.key())
	return n.generation >= tn.since && n.limits.Hash() == tn.under
}

// accept has the store that never dies forget what nobody was given: new buckets, and
// changes of limits.
func (w *world) accept(old, now *Store) {
	after := now.copies()
	for id, o := range old.copies() {
		if n := after[id]; n == nil {
			w.forget(o.key())
		} else if !w.heard(n) {
			w.resync(n)
		}
	}
}

// checkBalance holds one limit against what it was.
func (w *world) checkBalance(o, n *bucket, i int, was int64, steady bool, size int64) {
	w.t.Helper()
	p := n.limits.Params(i)
	got, most := n.balance(i).Tokens, o.balance(i).Available(p, max(was, w.clock()))
	if got > most {
		w.fatalf("bucket %s, limit %v: recovered %d, there were %d", n.entity, n.limits.At(i), got, most)
	}
	if least := most - size - w.unanswered(n.entity+"/"+n.limits.At(i).Name); steady && got < least {
		w.fatalf("bucket %s, limit %v: recovered %d of %d, and the block was %d", n.entity, n.limits.At(i), got, most, size)
	}
}

// checkBelow fails where a bucket has more than the one that never died.
func (w *world) checkBelow(n *bucket) {
	w.t.Helper()
	whole := bucketOf(w.whole, n.key())
	if whole == nil || whole.limits.Hash() != n.limits.Hash() {
		return
	}
	for i := range n.limits.Len() {
		p := n.limits.Params(i)
		if n.limits.Unlimited(i) {
			continue
		}
		if got, most := n.balance(i).Tokens, whole.balance(i).Available(p, w.real); got > most {
			w.fatalf("bucket %s, limit %v: recovered %d, there are at most %d", n.entity, n.limits.At(i), got, most)
		}
	}
}

// checkStop wants everything as it was.
func (w *world) checkStop(before map[string]*bucket, now *Store, was int64, steady bool) {
	w.t.Helper()
	after := now.copies()
	for id, o := range before {
		n := after[id]
		if n == nil {
			if w.tenant(o.key()).taken && !o.full(was) {
				w.fatalf("stopped in order: bucket %s, which was not full, is gone: %+v", o.entity, o.first)
			}
			w.forget(o.key())
			continue
		}
		if n.limits.Hash() != o.limits.Hash() {
			w.fatalf("stopped in order: bucket %s is under the limits of before", o.entity)
		}
		for i := range n.limits.Len() {
			p := n.limits.Params(i)
			if n.limits.Unlimited(i) {
				continue
			}
			got, want := n.balance(i).Refill(p, w.clock()), o.balance(i).Refill(p, w.clock())
			if steady && got != want || got.Tokens > want.Tokens {
				w.fatalf("stopped in order: bucket %s, limit %v: %+v, want %+v", n.entity, n.limits.At(i), got, want)
			}
		}
	}
	if r := now.Recovery(); r.Crashed || r.Blocks != 0 || r.Lost != 0 {
		w.fatalf("stopped in order: found %+v", r)
	}
}

// sizes reads the sizes of the blocks in the file, by bucket and limit.
func (w *world) sizes(s *Store) map[string][]int64 {
	w.t.Helper()
	all := make(map[string][]int64)
	err := s.disk.file.View(func(tx *datafile.Tx) error {
		return tx.Each(datafile.Buckets, nil, func(key, value []byte) error {
			r, err := parseBucket(key, value, make(map[string]*limiter.Limits))
			all[string(key)] = r.sizes
			return err
		})
	})
	if err != nil {
		w.fatalf("reading the buckets: %v", err)
	}
	return all
}

// checkReport wants what is said to be lost to be the blocks.
func (w *world) checkReport(s *Store, sizes map[string][]int64) {
	w.t.Helper()
	want := Recovery{Buckets: len(sizes), Crashed: true}
	for _, limits := range sizes {
		for _, size := range limits {
			if size > 0 {
				want.Blocks++
				want.Lost += size
			}
		}
	}
	if got := s.Recovery(); got != want {
		w.fatalf("recovery: got %+v, want %+v", got, want)
	}
}

// resync has the store that never dies forget a change of limits as well: nothing was
// given since.
func (w *world) resync(n *bucket) {
	w.forget(n.key())
	b := n.copy()
	b.block = nil
	for i := range b.limits.Len() {
		b.balance(i).Refilled -= w.skew
	}
	for i := range b.sleeping() {
		b.rest.dormant[i].bucket.Refilled -= w.skew
	}
	hash := w.whole.hash(n.key())
	sh := &w.whole.shards[hash%shardCount]
	b.next = sh.buckets[hash]
	sh.buckets[hash] = b
	w.whole.buckets.Add(1)
}

func (b *bucket) key() *limiter.BucketKey {
	return &limiter.BucketKey{Namespace: b.namespace.Value(), Entity: b.entity, Resource: b.resource.Value(), Variant: b.variant}
}

// sleeping is what a bucket has dormant.
func (b *bucket) sleeping() []dormant {
	if b.rest == nil {
		return nil
	}
	return b.rest.dormant
}
