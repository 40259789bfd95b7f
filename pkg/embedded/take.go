package embedded

import (
	"errors"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

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

// takeOne is takeAll for the common case of one bucket, without its bookkeeping. done is false if
// the key has no bucket and there is no room for one.
func (k *taker) takeOne(now int64, op *limiter.Op) (admitted, done bool, err error) {
	hash := k.hash(&op.Bucket)
	sh := &k.shards[hash%shardCount]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	b, created, err := k.open(sh, hash, now, op)
	if b == nil {
		return false, false, err
	}
	admitted = b.prepare(op, now)
	b.finish(op, admitted)
	if created && b.full(now) {
		k.drop(sh, hash, b)
	}
	return admitted, true, nil
}

// takeAll decides over several buckets under the locks of all of them.
func (k *taker) takeAll(now int64, ops []limiter.Op) (bool, error) {
	admitted, later, err := k.takeTogether(now, ops)
	for _, i := range later {
		_, _, failed := k.takeTogether(now, ops[i:i+1])
		err = errors.Join(err, failed)
	}
	return admitted, err
}

// takeTogether is takeAll without the deferred ops, whose indices it returns.
func (k *taker) takeTogether(now int64, ops []limiter.Op) (admitted bool, later []int, err error) {
	var fixed [16]opened
	held := fixed[:0]
	for i := range ops {
		held = append(held, opened{hash: k.hash(&ops[i].Bucket)})
	}
	var few [17]uint16
	indices, err := k.openAll(few[:0], held, ops, now)
	defer k.unlock(indices)
	if err != nil {
		k.dropFull(held, now) // nothing was applied: the created buckets are full
		return false, nil, err
	}
	admitted = true
	for i := range ops {
		if !held[i].bucket.prepare(&ops[i], now) {
			admitted = false
		}
	}
	for i := range ops {
		if !held[i].none {
			held[i].bucket.finish(&ops[i], admitted)
		}
	}
	k.dropFull(held, now)
	return admitted, deferredOps(held), nil
}
