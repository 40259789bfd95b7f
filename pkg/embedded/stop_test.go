package embedded

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/embedded/datafile"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// A stop writes one record a bucket, also for full ones. Usage stays in the records, and the next
// run moves it to rows.
func TestAStopMovesNoUsage(t *testing.T) {
	l := newNode(t)
	const keys = 100
	limits := limitsOf(t, limiter.PerSecond("l", 10))
	for i := range keys {
		l.take(true, opOf(fmt.Sprint("a", i), limits, 1))
	}
	used := l.now
	l.now = l.now.Add(10 * time.Second)
	l.stop(0)
	records := l.disk.file.Stats().Records
	if records[datafile.Usage] != 0 || records[datafile.Buckets] != keys {
		t.Errorf("after the stop the file has %d rows and %d buckets, want 0 and %d", records[datafile.Usage], records[datafile.Buckets], keys)
	}
	l.now = l.now.Add(2 * time.Minute)
	l.store.sweep(0, shardCount, l.now.UnixMilli())
	l.write()
	records = l.disk.file.Stats().Records
	if records[datafile.Buckets] != 0 {
		t.Errorf("a sweep leaves %d buckets", records[datafile.Buckets])
	}
	for i := range keys {
		if got := usageOf(t, l.store, "default", fmt.Sprint("a", i), "r", limiter.UsageHour, used); got["l"] != limiter.Milli {
			t.Fatalf("usage of a%d: %v, want 1000", i, got)
		}
	}
}

// The block of a bucket that is not used is closed along the way, by one commit: a stop has nothing to write,
// and a crash loses nothing.
func TestABlockThatIsNotUsedIsClosed(t *testing.T) {
	l := newNode(t)
	limits := limitsOf(t, limiter.PerDay("l", 1000))
	l.take(true, opOf("a", limits, 10))
	sweep := func() uint64 {
		before := l.disk.file.Stats().Commits
		l.store.sweep(0, shardCount, l.now.UnixMilli())
		l.write()
		return l.disk.file.Stats().Commits - before
	}
	if got := sweep(); got != 0 {
		t.Errorf("%d commits for a block that is in use", got)
	}
	l.now = l.now.Add(time.Minute + time.Second)
	if got := sweep(); got != 1 {
		t.Errorf("%d commits for a block that is not used, want 1", got)
	}
	if got := sweep(); got != 0 {
		t.Errorf("%d commits for a block that is closed", got)
	}
	l.kill(0)
	if got, want := l.store.Recovery(), (Recovery{Buckets: 1, Crashed: true}); got != want {
		t.Errorf("after a crash: %+v, want %+v", got, want)
	}
	l.take(true, opOf("a", limits, 1))
	l.stop(0)
	if got, want := l.store.Recovery(), (Recovery{Buckets: 1}); got != want {
		t.Errorf("used again, and stopped: %+v, want %+v", got, want)
	}
}

// A bucket that is used while its block is being closed waits for the next one, and loses nothing.
func TestABlockIsClosedWhileItIsUsed(t *testing.T) {
	for what, fail := range map[string]error{"written": nil, "not written": datafile.ErrFull, "unknown outcome": datafile.ErrUncertain} {
		l := newNode(t)
		limits := limitsOf(t, limiter.PerDay("l", 1000))
		l.take(true, opOf("a", limits, 10))
		l.now = l.now.Add(2 * time.Minute)
		l.store.sweep(0, shardCount, l.now.UnixMilli())
		n := l.disk.take()
		w := l.disk.collect(n)
		op := opOf("a", limits, 1)
		if got, err := l.store.tryOne(l.now.UnixMilli(), &op); err != nil || got.done || got.wait == nil {
			t.Errorf("%s: a take meanwhile: %+v, %v; want one that waits", what, got, err)
		}
		if fail == nil {
			fail = w.save(l.disk.file)
		}
		l.disk.conclude(n, fail)
		l.take(true, opOf("a", limits, 1))
		l.kill(0)
		op = opOf("a", limits, 0)
		l.take(true, op)
		if got := op.Spends[0].Bucket.Tokens; got > 990_000 || got < 960_000 {
			t.Errorf("%s: %d millitokens after a crash, want 989000 less a block", what, got)
		}
	}
}

// A close returns when its context ends, also if the disk hangs, and may be called again.
func TestCloseOfADiskThatHangs(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Config{})
	if err != nil {
		t.Fatal(err)
	}
	mustTake(t, s, time.Now(), true, opOf("a", limitsOf(t, limiter.PerDay("l", 1000)), 1))
	busy, release, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- s.disk.file.Update(func(*datafile.Tx) error {
			close(busy)
			<-release
			return nil
		})
	}()
	<-busy
	s.disk.ask(inUse("n")) // the writer waits for the disk
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer stop()
	if err := s.Close(ctx); !errors.Is(err, limiter.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want ErrUnavailable for the time", err)
	}
	close(release)
	if err := errors.Join(<-ended, s.Close(t.Context())); err != nil {
		t.Error(err)
	}
	if r := openTest(t, dir, Config{}).Recovery(); r != (Recovery{Buckets: 1}) {
		t.Errorf("found %+v, want one exact bucket", r)
	}
}

// However many buckets there are, the work of a stop ends with its time. The rest is as after a crash: never more
// than it was.
func TestAStopEndsWithItsTime(t *testing.T) {
	l := newNode(t)
	const keys = 2*finishBatch + 1
	limits := limitsOf(t, limiter.PerDay("l", 1000))
	for i := range keys {
		op := opOf(fmt.Sprint("a", i), limits, 10)
		if _, err := l.store.tryOne(l.now.UnixMilli(), &op); err != nil {
			t.Fatal(err)
		}
	}
	l.write()
	for i := range keys {
		op := opOf(fmt.Sprint("a", i), limits, 10)
		if got, err := l.store.tryOne(l.now.UnixMilli(), &op); err != nil || !got.done {
			t.Fatal(got, err)
		}
	}
	over, end := context.WithCancel(t.Context())
	end()
	for i := range l.store.shards {
		l.disk.keep(l.store.shards[i].buckets)
	}
	if err := l.disk.finish(over); !errors.Is(err, limiter.ErrUnavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want ErrUnavailable for the time", err)
	}
	l.begin()
	if r := l.store.Recovery(); !r.Crashed || r.Buckets != keys || r.Lost == 0 {
		t.Errorf("found %+v, want the state after a crash", r)
	}
	for i := range keys {
		op := opOf(fmt.Sprint("a", i), limits, 0)
		if _, err := l.store.tryOne(l.now.UnixMilli(), &op); err != nil || op.Spends[0].Bucket.Tokens > 990_000 {
			t.Fatalf("a%d has %d millitokens, %v; want 990000 at most", i, op.Spends[0].Bucket.Tokens, err)
		}
	}
}
