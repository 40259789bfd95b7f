package embedded

import (
	"github.com/ratelimit/ratelimit/pkg/embedded/datafile"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// checkCrash compares a run with the memory of the one before, which ended at was by its clock.
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
		if !w.fileHasLimits(n) {
			if tn := w.tenant(o.key()); tn.given {
				w.fatalf("bucket %s gave tokens under limits that the file does not have", o.entity)
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

// fileHasLimits reports whether the file had the limits of the bucket in the run before.
func (w *world) fileHasLimits(n *bucket) bool {
	tn := w.tenant(n.key())
	return n.generation >= tn.since && n.limits.Hash() == tn.under
}

// accept removes from the reference store the effects that gave no tokens: new buckets, and updates
// of limits.
func (w *world) accept(old, now *Store) {
	after := now.copies()
	for id, o := range old.copies() {
		if n := after[id]; n == nil {
			w.forget(o.key())
		} else if !w.fileHasLimits(n) {
			w.resync(n)
		}
	}
}

// checkBalance compares the balance of one limit with that of the run before.
func (w *world) checkBalance(o, n *bucket, i int, was int64, steady bool, size int64) {
	w.t.Helper()
	p := n.limits.Params(i)
	got, most := n.balance(i).Tokens, o.balance(i).Available(p, max(was, w.clock()))
	if got > most {
		w.fatalf("bucket %s, limit %v: recovered %d, there were %d", n.entity, n.limits.At(i), got, most)
	}
	if least := most - size - w.openRefunds(n.entity+"/"+n.limits.At(i).Name); steady && got < least {
		w.fatalf("bucket %s, limit %v: recovered %d of %d, and the block was %d", n.entity, n.limits.At(i), got, most, size)
	}
}

// checkBelow fails where a bucket has more than the reference's.
func (w *world) checkBelow(n *bucket) {
	w.t.Helper()
	whole := bucketOf(w.reference, n.key())
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

// checkStop checks that a clean shutdown lost nothing.
func (w *world) checkStop(before map[string]*bucket, now *Store, was int64, steady bool) {
	w.t.Helper()
	after := now.copies()
	for id, o := range before {
		n := after[id]
		if n == nil {
			if w.tenant(o.key()).taken && !o.full(was) {
				w.fatalf("clean shutdown: bucket %s, which was not full, is missing: %+v", o.entity, o.first)
			}
			w.forget(o.key())
			continue
		}
		if n.limits.Hash() != o.limits.Hash() {
			w.fatalf("clean shutdown: bucket %s has its old limits", o.entity)
		}
		for i := range n.limits.Len() {
			p := n.limits.Params(i)
			if n.limits.Unlimited(i) {
				continue
			}
			got, want := n.balance(i).Refill(p, w.clock()), o.balance(i).Refill(p, w.clock())
			if steady && got != want || got.Tokens > want.Tokens {
				w.fatalf("clean shutdown: bucket %s, limit %v: %+v, want %+v", n.entity, n.limits.At(i), got, want)
			}
		}
	}
	if r := now.Recovery(); r.Crashed || r.Blocks != 0 || r.Lost != 0 {
		w.fatalf("clean shutdown: found %+v", r)
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

// checkReport checks that the reported loss is the sum of the blocks.
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
	got := s.Recovery()
	got.Behind = 0 // clocks jump
	if got != want {
		w.fatalf("recovery: got %+v, want %+v", got, want)
	}
}

// resync copies a bucket to the reference store, if no token was given since an update of limits.
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
	hash := w.reference.hash(n.key())
	sh := &w.reference.shards[hash%shardCount]
	b.next = sh.buckets[hash]
	sh.buckets[hash] = b
	w.reference.buckets.Add(1)
}

func (b *bucket) key() *limiter.BucketKey {
	return &limiter.BucketKey{Namespace: b.namespace.Value(), Entity: b.entity, Resource: b.resource.Value(), Variant: b.variant}
}

// sleeping returns the dormant limits of a bucket.
func (b *bucket) sleeping() []dormant {
	if b.rest == nil {
		return nil
	}
	return b.rest.dormant
}
