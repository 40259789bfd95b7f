package dynamo

import (
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
)

// A million buckets that pass through one after another do not stay in memory.
func TestAMillionLanesPassThrough(t *testing.T) {
	const most, all = 1 << 12, 1_000_000
	var lanes lanes
	lanes.init(most)
	now := time.Now()
	pass := func(from, to int) {
		for i := from; i < to; i++ {
			now = now.Add(time.Microsecond)
			l := lanes.enqueue(schema.BucketKey("ns", "key/"+strconv.Itoa(i), "r", 0, 0), &request{})
			if l == nil {
				t.Fatalf("bucket %d: somebody runs the lane", i)
			}
			for _, last := range []bool{false, true} {
				lanes.next(l, last, func() time.Time { return now })
			}
		}
	}
	held := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	pass(0, 2*most)
	before := held()
	pass(2*most, all)
	grown := held() - before
	t.Logf("%d lanes, %d bytes more than after %d buckets", lanes.count(), grown, 2*most)
	if got := lanes.count(); got > most || got < most/2 {
		t.Errorf("%d lanes are held, want about %d", got, most)
	}
	if grown > 1<<20 {
		t.Errorf("%d bytes more after %d buckets", grown, all)
	}
	lanes.sweep(0, laneShards, now.Add(time.Hour))
	if got := lanes.count(); got != 0 {
		t.Errorf("%d lanes are held when all are idle", got)
	}
}
