package aggregator

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// stopping are snapshots whose time ends with the write of the first record, which fails for a reason of its own.
type stopping struct {
	first Sequence
	why   error
	stop  func()
	calls atomic.Int64
}

func (s *stopping) Add(ctx context.Context, c *Change) (Sequence, error) {
	s.calls.Add(1)
	if c.First == s.first {
		s.stop()
		return "", s.why
	}
	<-ctx.Done()
	return "", ctx.Err()
}

// A flush whose time is over makes no more calls, and returns why the first record is not counted.
func TestAFlushEndsWithItsTime(t *testing.T) {
	f := newFleet()
	for i := range 500 {
		f.write("s", fmt.Sprint("k", i), Bucket{"ns", fmt.Sprint("e", i), "r"}, begin(), "rpm", 1)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	slow := &stopping{first: f.shards["s"][0].Sequence, why: errors.New("why"), stop: stop}
	b := NewBatch("s", []limiter.UsageWindow{limiter.UsageHour}, nil)
	for i := range f.shards["s"] {
		b.Add(&f.shards["s"][i])
	}
	done, err := b.Flush(ctx, slow)
	if slow.calls.Load() > flushers || done.Failed != slow.first || !errors.Is(err, slow.why) {
		t.Errorf("%d calls, %+v, %v; want at most %d", slow.calls.Load(), done, err, flushers)
	}
	to := newTable()
	if _, err := b.Flush(t.Context(), to); err != nil || len(to.used) != 500 {
		t.Errorf("%d snapshots, %v", len(to.used), err)
	}
}
