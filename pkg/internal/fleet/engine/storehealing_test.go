package engine

import (
	"testing"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/lane"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// memoryOf returns a memory of a bucket.
func memoryOf(entity string) lane.Memory {
	return lane.Memory{Site: lane.Site{Namespace: "AbCdEfGhIj0", Bucket: limiter.BucketKey{Entity: entity, Resource: "r"}}, State: &schema.Bucket{}}
}

// Buckets whose server has lost nothing are not healed, and are remembered for the next time. Those that are not healed
// yet are healed then, too.
func TestABucketOfAServerThatLostNothing(t *testing.T) {
	a, b := memoryOf("a"), memoryOf("b")
	lost := func(m lane.Memory) func(schema.Key) bool {
		return func(k schema.Key) bool { return k == m.Site.Key(0) }
	}
	h := newHealing(&Store{}, []lane.Memory{a, b}, nil, lost(a))
	defer h.stop()
	if len(h.kept) != 2 || len(h.left) != 1 || len(h.left[a.Site.Bucket]) != 1 {
		t.Errorf("of a and b %v are to be healed, and %d are remembered", h.left, len(h.kept))
	}
	next := newHealing(&Store{}, nil, h, lost(b))
	defer next.stop()
	if len(next.left) != 2 || !next.lost(a.Site.Key(0)) || !next.lost(b.Site.Key(0)) {
		t.Errorf("a is left by the first change, b is lost by the second; to be healed are %v", next.left)
	}
	clear(next.left)
	<-next.still
	last := newHealing(&Store{}, nil, next, lost(b))
	defer last.stop()
	if len(last.left) != 1 || last.lost(a.Site.Key(0)) {
		t.Errorf("b alone is lost by the third change; to be healed are %v", last.left)
	}
}
