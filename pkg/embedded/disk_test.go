package embedded

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/embedded/datafile"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// settled waits until all requested writes are made.
func settled(t *testing.T, s *Store) uint64 {
	t.Helper()
	for range 2 { // a batch that waits, and one that is being written
		if err := s.disk.ask().wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return s.Stats().Commits
}

// Far fewer commits than decisions, for a bucket that is used all the time.
func TestAHotBucketMakesFewCommits(t *testing.T) {
	for _, tt := range []struct {
		capacity    int64
		takes, most int
	}{
		{1_000_000, 1000, 3}, {100_000, 1000, 12}, {1000, 900, 30},
	} {
		s := openTest(t, t.TempDir(), Config{Now: func() time.Time { return t0 }})
		op := opOf("hot", limitsOf(t, limiter.PerHour("l", tt.capacity)), 1)
		before := settled(t, s)
		for i := range tt.takes {
			mustTake(t, s, t0.Add(time.Duration(i)*time.Microsecond), true, op)
		}
		got := int(settled(t, s) - before)
		t.Logf("capacity %d: %d commits for %d decisions", tt.capacity, got, tt.takes)
		if got > tt.most || got == 0 {
			t.Errorf("capacity %d: %d commits for %d decisions, want 1 to %d", tt.capacity, got, tt.takes, tt.most)
		}
	}
}

// Concurrent callers of a bucket without a record share few commits.
func TestCallersAtOnceShareCommits(t *testing.T) {
	s := openTest(t, t.TempDir(), Config{})
	limits := limitsOf(t, limiter.PerHour("l", 1000))
	before := settled(t, s)
	var wg sync.WaitGroup
	for range 200 {
		wg.Go(func() {
			if ok, err := s.Take(t.Context(), time.Now(), []limiter.Op{opOf("a", limits, 1)}); err != nil || !ok {
				t.Error(ok, err)
			}
		})
	}
	wg.Wait()
	if got := settled(t, s) - before; got > 20 {
		t.Errorf("%d commits for 200 callers of one bucket", got)
	}
}

func TestDenialsAndLooksMakeNoCommit(t *testing.T) {
	s := openTest(t, t.TempDir(), Config{Now: func() time.Time { return t0 }})
	limits := limitsOf(t, limiter.PerDay("l", 10))
	mustTake(t, s, t0, true, opOf("used up", limits, 10))
	before := settled(t, s)
	look := opOf("used up", limits, 0)
	look.Spends[0].Look = true
	for i := range 1000 {
		mustTake(t, s, t0, false, opOf("used up", limits, 1))
		mustTake(t, s, t0, false, look)
		mustTake(t, s, t0, false, opOf(fmt.Sprint("new", i), limits, 11))
		mustTake(t, s, t0, false, opOf("used up", limits, 1), opOf(fmt.Sprint("new", i), limits, 1))
	}
	if got := settled(t, s) - before; got != 0 {
		t.Errorf("%d commits for denials, want none", got)
	}
	if got := s.Buckets(); got != 1 {
		t.Errorf("%d buckets after denials, want 1", got)
	}
}

// An idle store deletes the records of full buckets, and then makes no more commits.
func TestAnIdleStoreMakesNoCommit(t *testing.T) {
	now := t0
	s, d := openStill(t, t.TempDir(), Config{Now: func() time.Time { return now }})
	for i := range 500 {
		op := opOf(fmt.Sprint("a", i), limitsOf(t, limiter.PerSecond("l", 10)), 1)
		if _, err := s.tryOne(t0.UnixMilli(), &op); err != nil {
			t.Fatal(err)
		}
	}
	d.writeNext()
	if got := d.file.Stats().Records[datafile.Buckets]; got != 500 {
		t.Fatalf("%d records, want 500", got)
	}
	now = t0.Add(time.Hour)
	sweep := func() (commits uint64) {
		before := s.Stats().Commits
		s.sweep(0, shardCount, now.UnixMilli())
		for d.writeNext() {
		}
		return s.Stats().Commits - before
	}
	if got := sweep(); got != 1 {
		t.Errorf("%d commits to forget 500 buckets, want 1", got)
	}
	if got := d.file.Stats().Records[datafile.Buckets]; got != 0 || s.Buckets() != 0 {
		t.Errorf("%d records and %d buckets after a sweep, want none", got, s.Buckets())
	}
	if got := sweep(); got != 0 {
		t.Errorf("%d commits of a store without buckets, want none", got)
	}
}

// The sweeper waits for the file shard by shard, so that no commit is long for its sake.
func TestASweepIsManyCommits(t *testing.T) {
	now := t0
	var mu sync.Mutex
	s := openTest(t, t.TempDir(), Config{SweepInterval: time.Hour, Now: func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now
	}})
	limits := limitsOf(t, limiter.PerSecond("l", 10))
	var wg sync.WaitGroup
	for c := range 100 {
		wg.Go(func() {
			for i := range 20 {
				if ok, err := s.Take(t.Context(), t0, []limiter.Op{opOf(fmt.Sprint(c, "/", i), limits, 1)}); err != nil || !ok {
					t.Error(ok, err)
				}
			}
		})
	}
	wg.Wait()
	mu.Lock()
	now = t0.Add(time.Hour)
	mu.Unlock()
	before := settled(t, s)
	for part := range sweepsPerInterval {
		s.sweepPart(part, nil)
	}
	if got := s.Buckets(); got != 0 {
		t.Errorf("%d buckets after a sweep", got)
	}
	if got := settled(t, s) - before; got < 1000 {
		t.Errorf("2000 buckets in some 1600 shards left in %d commits", got)
	}
}

func TestTakeHonoursItsContextWhileItWaits(t *testing.T) {
	s, _ := openStill(t, t.TempDir(), Config{}) // no writer runs
	limits := limitsOf(t, limiter.PerHour("l", 10))
	for _, ops := range [][]limiter.Op{{opOf("a", limits, 1)}, {opOf("a", limits, 1), opOf("b", limits, 1)}} {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			_, err := s.Take(ctx, time.Now(), ops)
			ended <- err
		}()
		cancel()
		if err := <-ended; !errors.Is(err, limiter.ErrUnavailable) || !errors.Is(err, context.Canceled) {
			t.Errorf("Take: got %v, want ErrUnavailable for the context", err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	m := markOf("r", "o", 0)
	m.Expires = time.Now().Add(time.Hour)
	ended := make(chan error)
	go func() {
		_, err := s.Settle(ctx, time.Now(), m)
		ended <- err
	}()
	cancel()
	if err := <-ended; !errors.Is(err, limiter.ErrUncertain) && !errors.Is(err, limiter.ErrUnavailable) {
		t.Errorf("Settle: got %v, want ErrUncertain or, before it began, ErrUnavailable", err)
	}
}

// A commit that fails fails its waiting callers. Takes within blocks continue.
func TestACommitThatFails(t *testing.T) {
	limits := limitsOf(t, limiter.PerHour("l", 100))
	for what, tt := range map[string]struct{ err, write error }{
		"no space":  {datafile.ErrFull, limiter.ErrUnavailable},
		"fsync":     {datafile.ErrUncertain, limiter.ErrUncertain},
		"read only": {datafile.ErrReadOnly, limiter.ErrUnavailable},
	} {
		s, d := openStill(t, t.TempDir(), Config{Now: func() time.Time { return t0 }})
		first := opOf("a", limits, 20)
		if _, err := s.tryOne(t0.UnixMilli(), &first); err != nil {
			t.Fatal(err)
		}
		d.writeNext() // a block of 20
		fail := func() {
			n := d.take()
			d.collect(n)
			d.conclude(n, tt.err)
			close(n.done)
		}
		large, change := opOf("a", limits, 50), make(chan error)
		got, err := s.tryOne(t0.UnixMilli(), &large)
		if err != nil || got.done {
			t.Fatalf("%s: more than the block: %+v, %v", what, got, err)
		}
		go func() { change <- d.write(t.Context(), inUse("n")) }()
		for asked := false; !asked; {
			d.mu.Lock()
			asked = len(d.next.changes) > 0
			d.mu.Unlock()
		}
		fail()
		if err := got.wait.wait(t.Context()); !errors.Is(err, limiter.ErrUnavailable) || !errors.Is(err, tt.err) {
			t.Errorf("%s: a take that waited: %v, want ErrUnavailable", what, err)
		}
		if err := <-change; !errors.Is(err, tt.write) || !errors.Is(err, tt.err) {
			t.Errorf("%s: a change: %v, want %v", what, err, tt.write)
		}
		for i := range 20 {
			op := opOf("a", limits, 1)
			if got, err := s.tryOne(t0.UnixMilli(), &op); err != nil || !got.done {
				t.Errorf("%s: token %d of the block: %+v, %v", what, i, got, err)
			}
		}
		op := opOf("a", limits, 1)
		if got, err := s.tryOne(t0.UnixMilli(), &op); err != nil || got.done {
			t.Errorf("%s: beyond the block: %+v, %v", what, got, err)
		}
		if got := s.Stats().CommitErrors; got != 1 {
			t.Errorf("%s: %d commit errors, want 1", what, got)
		}
	}
}

// Takes that wait when the store is closed end with ErrClosed, or were taken.
func TestCloseWhileTakesWait(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir, Config{})
	limits := limitsOf(t, limiter.PerDay("l", 1000))
	var wg sync.WaitGroup
	taken := make([]int64, 16)
	for c := range taken {
		wg.Go(func() {
			for {
				ok, err := s.Take(context.Background(), time.Now(), []limiter.Op{opOf("a", limits, 1), opOf(strconv.Itoa(rand.IntN(1000)), limits, 1)})
				if errors.Is(err, limiter.ErrClosed) || !ok && err == nil {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				taken[c]++
			}
		})
	}
	var closing sync.WaitGroup
	for range 2 {
		closing.Go(func() {
			if err := s.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	closing.Wait()
	wg.Wait()
	var sum int64
	for _, n := range taken {
		sum += n
	}
	s = openTest(t, dir, Config{})
	if r := s.Recovery(); r.Crashed || r.Lost != 0 || r.Blocks != 0 {
		t.Errorf("clean shutdown, and found %+v", r)
	}
	op := opOf("a", limits, 0)
	if _, err := s.Take(t.Context(), time.Now(), []limiter.Op{op}); err != nil {
		t.Fatal(err)
	}
	if got := op.Spends[0].Bucket.Tokens; sum > 0 && (got < (1000-sum)*limiter.Milli || got > (1000-sum+10)*limiter.Milli) {
		t.Errorf("%d millitokens left after %d takes, want the rest and the refill", got, sum)
	}
}

// A close that fails for its context can be called again, and then loses nothing.
func TestCloseAgain(t *testing.T) {
	dir := t.TempDir()
	s, d := openStill(t, dir, Config{})
	s.stop = func() {}
	go d.run()
	mustTake(t, s, time.Now(), true, opOf("a", limitsOf(t, limiter.PerDay("l", 1000)), 1))
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // and the sweeper has not ended
	if err := s.Close(ctx); !errors.Is(err, limiter.ErrUnavailable) {
		t.Errorf("with a context that is done: %v, want ErrUnavailable", err)
	}
	close(s.done)
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r := openTest(t, dir, Config{}).Recovery(); r != (Recovery{Buckets: 1}) {
		t.Errorf("found %+v, want one exact bucket", r)
	}
}
