package embedded

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Changes of balances are no usage, in the hour they are made or later.
func TestAdjustmentsAreNoUsage(t *testing.T) {
	now := time.Date(2026, 11, 22, 9, 59, 0, 0, time.UTC)
	s := openTest(t, t.TempDir(), Config{Now: func() time.Time { return now }})
	op := opOf("e", limitsOf(t, limiter.PerDay("l", 100)), 40)
	mustTake(t, s, now, true, op)
	for i, a := range []limiter.Adjustment{
		{}, {Kind: limiter.AdjustTakeOut, Tokens: 30_000}, {Kind: limiter.AdjustTopUp, Tokens: 10_000}, {Kind: limiter.AdjustSet, Tokens: 1}, {Kind: limiter.AdjustSet, Tokens: 100_000},
	} {
		a.Bucket = op.Bucket
		if out, err := s.AdjustBucket(t.Context(), now.Add(time.Duration(i)*time.Minute), a); err != nil || !out.Found {
			t.Fatalf("%+v, %v", out, err)
		}
	}
	mustTake(t, s, now.Add(5*time.Minute), true, op)
	for _, w := range []struct {
		window limiter.UsageWindow
		at     time.Time
		want   int64
	}{
		{limiter.UsageHour, now, 40_000},
		{limiter.UsageHour, now.Add(time.Hour), 40_000},
		{limiter.UsageDay, now, 80_000},
		{limiter.UsageMonth, now, 80_000},
	} {
		got := usageOf(t, s, op.Bucket.Namespace, "e", op.Bucket.Resource, w.window, w.at)
		if diff := cmp.Diff(map[string]int64{"l": w.want}, got); diff != "" {
			t.Errorf("%v at %v (-want +got):\n%s", w.window, w.at, diff)
		}
	}
}

// A crash after an adjustment loses a block of it at most.
func TestAdjustmentsOutliveACrash(t *testing.T) {
	l := newNode(t)
	go l.disk.run()
	op := opOf("e", limitsOf(t, limiter.PerDay("l", 1000)), 1000)
	mustTake(t, l.store, l.now, true, op)
	if _, err := l.store.AdjustBucket(t.Context(), l.now, limiter.Adjustment{Bucket: op.Bucket}); err != nil {
		t.Fatal(err)
	}
	mustClose(t, l.disk)
	l.kill(0)
	go l.disk.run()
	out, err := l.store.AdjustBucket(t.Context(), l.now, limiter.Adjustment{Bucket: op.Bucket, Kind: limiter.AdjustTopUp})
	if err != nil || out.Found && out.Before.Limits[0].Tokens < 900_000 {
		t.Errorf("after a crash: %+v, %v; want nearly 1000 tokens, or no bucket", out, err)
	}
	mustClose(t, l.disk)
}

// After a restart the bookings under a Once are still on record.
func TestFirstAdjustmentOutlivesARestart(t *testing.T) {
	now := time.Date(2026, 11, 22, 9, 59, 0, 0, time.UTC)
	dir := t.TempDir()
	s := openTest(t, dir, Config{Now: func() time.Time { return now }})
	op := opOf("e", limitsOf(t, limiter.PerDay("l", 100)), 40)
	mustTake(t, s, now, true, op)
	a := limiter.Adjustment{Bucket: op.Bucket, Kind: limiter.AdjustTopUp, Tokens: 50_000, Excess: limiter.ExcessCut, Once: "invoice"}
	if out, err := s.AdjustBucket(t.Context(), now, a); err != nil || out.Repeated {
		t.Fatalf("%+v, %v", out, err)
	}
	mustTake(t, s, now, true, op)
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	s = openTest(t, dir, Config{Now: func() time.Time { return now }})
	out, err := s.AdjustBucket(t.Context(), now, a)
	want := &limiter.FirstAdjustment{Kind: a.Kind, Tokens: a.Tokens, Booked: []limiter.Booking{{Limit: "l", Tokens: 40_000}}}
	if diff := cmp.Diff(want, out.First); err != nil || !out.Repeated || diff != "" {
		t.Errorf("repeated %v, %v (-want +got):\n%s", out.Repeated, err, diff)
	}
}

// A mark has the bookings that were made, also where the bucket was used after it was read. If the
// bucket was filled and nothing was booked, the Once can be used again.
func TestMarksAreRevised(t *testing.T) {
	now := time.Date(2026, 11, 22, 9, 59, 0, 0, time.UTC)
	for name, s := range map[string]*Store{"memory": newStore(t, Config{}), "a file": openTest(t, t.TempDir(), Config{Now: func() time.Time { return now }})} {
		for between, booked := range map[string]int64{"nothing": 40_000, "used": 50_000, "filled": 0} {
			b := s.balances
			op := opOf(between, limitsOf(t, limiter.PerDay("l", 100)), 40)
			mustTake(t, s, now, true, op)
			a := &adjustment{Adjustment: limiter.Adjustment{Bucket: op.Bucket, Kind: limiter.AdjustTopUp, Tokens: 50_000, Excess: limiter.ExcessCut, Once: between}, balances: b, hash: b.table.hash(&op.Bucket)}
			out, err := a.read(now.UnixMilli())
			if err != nil || out.Booked[0].Tokens != 40_000 {
				t.Fatalf("%+v, %v; want 40 foreseen", out, err)
			}
			if won, err := a.claim(now, out.Booked); err != nil || !won {
				t.Fatal(won, err)
			}
			switch between {
			case "used":
				mustTake(t, s, now, true, opOf(between, op.Limits, 10))
			case "filled":
				if _, err := s.AdjustBucket(t.Context(), now, limiter.Adjustment{Bucket: op.Bucket}); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := a.make(t.Context(), now.UnixMilli(), &out); err != nil || out.Booked[0].Tokens != booked {
				t.Fatalf("%s, %s: %+v, %v; want %d booked", name, between, out, err, booked)
			}
			if a.Unfit(out.Booked) {
				a.unclaim()
			}
			first, found, err := a.first(now)
			if err != nil || found != (booked > 0) || found && first.Booked[0].Tokens != booked {
				t.Errorf("%s, %s: %+v, %v, %v; want %d booked", name, between, first, found, err, booked)
			}
		}
	}
}

// A bucket that was dropped after it was read was full, and is adjusted as a full one.
func TestAdjustABucketThatWasSwept(t *testing.T) {
	for what, tt := range map[string]struct {
		a    limiter.Adjustment
		want int64
	}{
		"set":      {limiter.Adjustment{Kind: limiter.AdjustSet, Tokens: 10_000}, 10_000},
		"take-out": {limiter.Adjustment{Kind: limiter.AdjustTakeOut, Tokens: 10_000}, 90_000},
		"top-up":   {limiter.Adjustment{Kind: limiter.AdjustTopUp, Tokens: 10_000}, 100_000},
	} {
		l := newNode(t)
		op := opOf("e", limitsOf(t, limiter.PerDay("l", 100)), 1)
		l.take(true, op)
		l.now = l.now.Add(25 * time.Hour)
		now := l.now.UnixMilli()
		a := adjustment{Adjustment: tt.a, balances: l.store.balances, hash: l.store.hash(&op.Bucket)}
		a.Bucket = op.Bucket
		out, err := a.read(now)
		if err != nil || !out.Found {
			t.Fatal(out, err)
		}
		l.store.sweep(0, shardCount, now)
		l.write()
		if l.store.Buckets() != 0 {
			t.Fatal("the bucket was not swept")
		}
		for done := false; !done; l.write() {
			done, _, err = a.try(now, &out)
			if err != nil {
				t.Fatal(err)
			}
		}
		if got := out.After.Limits[0].Tokens; got != tt.want {
			t.Errorf("%s: the answer says %d millitokens, want %d", what, got, tt.want)
		}
		l.kill(0)
		look := opOf("e", op.Limits, 0)
		l.take(true, look)
		if got := look.Spends[0].Bucket.Tokens; got > tt.want || got < tt.want-100_000/hotShare {
			t.Errorf("%s: after a crash %d millitokens, want %d less a block", what, got, tt.want)
		}
	}
}

// Wherever a process dies during a change with a key, the same change can be made again, and is made once.
func TestAChangeWithAKeyIsMadeOnce(t *testing.T) {
	topUp := limiter.Adjustment{Kind: limiter.AdjustTopUp, Tokens: 100_000, Once: "ticket 4711"}
	made := 0
	for commits := range 6 {
		l := newNode(t)
		op := opOf("e", limitsOf(t, limiter.PerDay("l", 1000)), 1000)
		l.take(true, op)
		topUp.Bucket = op.Bucket
		ctx, cancel := context.WithCancel(t.Context())
		ended, store, disk := make(chan error, 1), l.store, l.disk
		go func() {
			_, err := store.AdjustBucket(ctx, t0, topUp)
			ended <- err
		}()
		for written := 0; written < commits && len(ended) == 0; runtime.Gosched() {
			if disk.writeNext() {
				written++
			}
		}
		if err := disk.file.Close(); err != nil {
			t.Fatal(err)
		}
		cancel()
		for len(ended) == 0 { // the write under way fails
			disk.writeNext()
			runtime.Gosched()
		}
		err := <-ended
		if err == nil {
			made++
		}
		l.begin()
		go l.disk.run()
		out, again := l.store.AdjustBucket(t.Context(), l.now, topUp)
		mustClose(t, l.disk)
		got := out.After.Limits[0].Tokens
		if again != nil || err == nil && !out.Repeated || got > 100_000 || got < 100_000-1_000_000/hotShare {
			t.Errorf("killed after %d commits, and %v: made again: %v, repeated is %t, %d millitokens; want 100000 less a block", commits, err, again, out.Repeated, got)
		}
	}
	if made == 0 {
		t.Error("none was made at once")
	}
}

// A change with a key that could not be made can be made again, by the same process too.
func TestAChangeWithAKeyThatFails(t *testing.T) {
	l := newNode(t)
	op := opOf("e", limitsOf(t, limiter.PerDay("l", 1000)), 1000)
	l.take(true, op)
	topUp := limiter.Adjustment{Bucket: op.Bucket, Kind: limiter.AdjustTopUp, Tokens: 100_000, Once: "ticket 4711"}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.store.AdjustBucket(ctx, l.now, topUp); err == nil {
		t.Fatal("it was made for a caller that was gone")
	}
	go l.disk.run()
	for _, repeated := range []bool{false, true} {
		out, err := l.store.AdjustBucket(t.Context(), l.now, topUp)
		if err != nil || out.Repeated != repeated || out.After.Limits[0].Tokens != 100_000 {
			t.Errorf("%+v, %v; want 100000 millitokens, repeated %t", out, err, repeated)
		}
	}
	mustClose(t, l.disk)
}
