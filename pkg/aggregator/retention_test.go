package aggregator

import (
	"context"
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// keepFor keeps the last change of each window.
type keepFor map[limiter.UsageWindow]Change

func (k keepFor) Add(_ context.Context, c *Change) (Sequence, error) {
	k[c.Snapshot.Window] = *c
	return "", nil
}

// With any accepted retention no snapshot expires while the stream may have records of its window: up to a
// day after the end of the window.
func TestNoSnapshotExpiresBeforeItsRecords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		age := time.Duration(rapid.Int64Range(int64(-time.Hour), int64(10_000*time.Hour)).Draw(t, "age"))
		window := rapid.SampledFrom(limiter.UsageWindows()).Draw(t, "window")
		keep := func(limiter.UsageWindow) time.Duration { return age }
		err := CheckRetentions([]limiter.UsageWindow{window}, keep)
		if refused := age < 0 || age > 0 && age < 24*time.Hour; (err != nil) != refused || refused && !errors.Is(err, limiter.ErrInvalid) {
			t.Fatalf("%v: %v", age, err)
		}
		if err != nil || age == 0 {
			return
		}
		at := time.Unix(rapid.Int64Range(0, 1<<32).Draw(t, "at"), 0)
		f, to := newFleet(), keepFor{}
		f.write("s", "k", Bucket{"ns", "e", "r"}, at, "rpm", 1)
		b := NewBatch("s", []limiter.UsageWindow{window}, keep)
		f.shards["s"][0].Time = at
		b.Add(&f.shards["s"][0])
		if _, err := b.Flush(context.Background(), to); err != nil {
			t.Fatal(err)
		}
		c := to[window]
		if end := window.End(c.Snapshot.Start); c.Expires.Before(end.Add(24*time.Hour)) || !end.After(at) {
			t.Fatalf("%v kept for %v: usage at %v expires at %v", window, age, at, c.Expires)
		}
	})
}

func TestNewRefusesAShortRetention(t *testing.T) {
	_, err := New(Config{
		Source: newStream(), Snapshots: newTable(), Leases: &leaseTable{}, Owner: "a",
		Retention: func(w limiter.UsageWindow) time.Duration {
			if w == limiter.UsageMonth {
				return 24*time.Hour - 1
			}
			return 0
		},
	})
	if !errors.Is(err, limiter.ErrInvalid) {
		t.Errorf("error %v", err)
	}
}
