package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/embedded/datafile"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// node is a sequence of processes on one directory, with its own clock.
type node struct {
	t     *testing.T
	dir   string
	now   time.Time
	store *Store
	disk  *disk
}

func newNode(t *testing.T) *node {
	t.Helper()
	l := &node{t: t, dir: t.TempDir(), now: t0}
	l.begin()
	return l
}

func (l *node) begin() {
	l.t.Helper()
	l.store, l.disk = openStill(l.t, l.dir, Config{Now: func() time.Time { return l.now }})
}

// kill ends the process, and begins another d later by its clock.
func (l *node) kill(d time.Duration) {
	l.t.Helper()
	if err := l.disk.file.Close(); err != nil {
		l.t.Fatal(err)
	}
	l.now = l.now.Add(d)
	l.begin()
}

// stop ends the process in order, and begins another d later by its clock.
func (l *node) stop(d time.Duration) {
	l.t.Helper()
	l.write()
	if err := l.disk.finishWith(l.store); err != nil {
		l.t.Fatal(err)
	}
	l.now = l.now.Add(d)
	l.begin()
}

// finishWith ends the file as Close does.
func (d *disk) finishWith(s *Store) error {
	for i := range s.shards {
		d.keep(s.shards[i].buckets)
	}
	return d.finish(context.Background())
}

func (l *node) write() {
	for l.disk.writeNext() {
	}
}

// take makes a decision, and writes the batches that it waits for and requests.
func (l *node) take(want bool, ops ...limiter.Op) {
	l.t.Helper()
	for range 5 {
		got, err := l.store.tryAll(l.now.UnixMilli(), ops)
		if err != nil {
			l.t.Fatal(err)
		}
		l.write()
		if got.done {
			if got.admitted != want {
				l.t.Fatalf("%v after the start: admitted %t, want %t", l.now.Sub(t0), got.admitted, want)
			}
			return
		}
	}
	l.t.Fatal("a take waits forever")
}

// has checks the millitokens of a bucket's one limit.
func (l *node) has(when string, limits *limiter.Limits, want int64) {
	l.t.Helper()
	op := opOf("a", limits, 0)
	l.take(true, op)
	if got := op.Spends[0].Bucket.Tokens; got != want {
		l.t.Errorf("%s: %d millitokens, want %d", when, got, want)
	}
}

func TestACrashTakesTheBlock(t *testing.T) {
	l := newNode(t)
	limits := limitsOf(t, limiter.Custom("l", 100, 1, time.Second))
	l.take(true, opOf("a", limits, 10)) // and the file gives 20 ahead
	l.has("before", limits, 90_000)
	l.kill(5 * time.Second)
	if got, want := l.store.Recovery(), (Recovery{Buckets: 1, Crashed: true, Blocks: 1, Lost: 20_000}); got != want {
		t.Errorf("recovery: got %+v, want %+v", got, want)
	}
	l.has("refilled first, then less the block", limits, 75_000)
	l.kill(0)
	l.has("a crash of a run that took nothing", limits, 75_000)
	l.kill(time.Hour)
	l.has("refilled up to the capacity, and then less the block", limits, 80_000)
	l.take(true, opOf("a", limits, 80))
	l.kill(0)
	l.has("no debt comes of a block", limits, 0)
}

func TestAStopLosesNothing(t *testing.T) {
	l := newNode(t)
	limits := limitsOf(t, limiter.Custom("l", 100, 1, time.Second))
	l.take(true, opOf("a", limits, 10))
	l.stop(5 * time.Second)
	if got, want := l.store.Recovery(), (Recovery{Buckets: 1}); got != want {
		t.Errorf("recovery: got %+v, want %+v", got, want)
	}
	l.has("later", limits, 95_000)
	l.stop(time.Hour)
	l.stop(0)
	if got, want := l.store.Recovery(), (Recovery{Buckets: 1}); got != want { // its record has usage
		t.Errorf("of a bucket that was full: got %+v, want %+v", got, want)
	}
}

func TestClocksBetweenLives(t *testing.T) {
	limits := limitsOf(t, limiter.Custom("l", 100, 1, time.Second))
	for _, tt := range []struct {
		what  string
		crash bool
		by    time.Duration
		want  int64
	}{
		{"stopped, set back", false, -time.Hour, 50_000},
		{"stopped, set forth", false, 10 * time.Second, 60_000},
		{"crashed, set back", true, -time.Hour, 50_000},
		{"crashed, set forth", true, 10 * time.Second, 50_000}, // of a state that was full, less the block of 50
	} {
		l := newNode(t)
		l.take(true, opOf("a", limits, 50))
		end := l.stop
		if tt.crash {
			end = l.kill
		}
		end(tt.by)
		if got := l.store.Recovery().Behind; got != max(0, -tt.by) {
			t.Errorf("%s: the clock is behind by %v", tt.what, got)
		}
		l.has(tt.what, limits, tt.want)
		l.now = l.now.Add(10 * time.Second)
		l.has(tt.what+", and then time goes on", limits, tt.want+10_000)
	}
}

func TestDebtOutlivesACrash(t *testing.T) {
	l := newNode(t)
	limits := limitsOf(t, limiter.Custom("l", 100, 1, time.Second).WithMaxDebt(300))
	charge := opOf("a", limits, 0)
	charge.Spends[0].Charge = 1_000_000
	l.take(true, charge)
	l.kill(0)
	l.has("a charge beyond all debt", limits, -300_000)
	charge.Spends[0].Charge = 1000
	l.take(true, charge)
	l.kill(time.Minute)
	l.has("a minute later", limits, -241_000)
}

// The use that a lowered limit carries is in the file. A crash does not reduce it, even after
// refills and charges of a block. So a raise adds nothing.
func TestUseOutlivesACrash(t *testing.T) {
	great := limiter.Custom("l", 10_000, 100, time.Second)
	greater, small := limitsOf(t, great.WithMaxDebt(300)), limitsOf(t, great.WithBurst(100).WithMaxDebt(300))
	for _, tc := range []struct {
		name  string
		taken int64
		then  func(l *node, charge limiter.Op)
		low   int64 // balances in millitokens, of the small limit and of the greater one
		high  int64
	}{
		{"a stop", 9950, func(l *node, _ limiter.Op) { l.stop(0) }, 50_000, 50_000},
		{"a crash before the file has the change", 9000, func(l *node, _ limiter.Op) { l.kill(time.Second) }, 100_000, 1_000_000},
		{"a block that was used twice", 9950, func(l *node, charge limiter.Op) {
			charge.Spends[0].Charge = 1_000_000
			l.take(true, charge)
			l.now = l.now.Add(4 * time.Second)
			charge.Spends[0].Charge = 390_000
			l.take(true, charge)
			l.kill(0)
		}, -300_000, -300_000},
	} {
		l := newNode(t)
		l.take(true, opOf("a", greater, tc.taken))
		op := opOf("a", small, 0)
		op.Generation = 2
		l.take(true, op)
		tc.then(l, op)
		for _, want := range []struct {
			limits     *limiter.Limits
			generation uint64
			tokens     int64
		}{{small, 2, tc.low}, {greater, 3, tc.high}} {
			op := opOf("a", want.limits, 0)
			op.Generation = want.generation
			l.take(true, op)
			if got := op.Spends[0].Bucket.Tokens; got != want.tokens {
				t.Errorf("%s: %d millitokens under generation %d, want %d", tc.name, got, want.generation, want.tokens)
			}
		}
	}
}

// TestDormantLimitsAreBounded: a bucket has limiter.MaxDormant dormant limits at most, and
// none that has no use once its state is written.
func TestDormantLimitsAreBounded(t *testing.T) {
	l := newNode(t)
	for i := range uint64(3 * limiter.MaxDormant) {
		op := opOf("a", limitsOf(t, limiter.PerHour(fmt.Sprint("l", i), 10)), 0)
		op.Generation, op.Spends[0].Charge = i+1, limiter.Milli
		l.take(true, op)
		if got := len(onlyBucket(t, l.store).sleeping()); got > limiter.MaxDormant {
			t.Fatalf("%d dormant limits, want %d at most", got, limiter.MaxDormant)
		}
	}
	if b := onlyBucket(t, l.store); len(b.sleeping()) != limiter.MaxDormant || !b.rest.forgotten.lasts(l.now.UnixMilli()) {
		t.Errorf("%d dormant limits, want %d; forgotten: %+v", len(b.sleeping()), limiter.MaxDormant, b.rest.forgotten)
	}
	l.now = l.now.Add(2 * time.Hour)
	op := opOf("a", limitsOf(t, limiter.PerHour("last", 10)), 3)
	op.Generation = 1000
	l.take(true, op)
	if b := onlyBucket(t, l.store); len(b.sleeping()) != 0 || b.rest != nil && b.rest.forgotten != (forgotten{}) {
		t.Errorf("after two hours %d limits are dormant, and %+v", len(b.sleeping()), b.rest)
	}
}

// Limits that changed are in the file before anything is taken under them.
func TestChangedLimitsOutliveACrash(t *testing.T) {
	l := newNode(t)
	day, hour := limiter.PerDay("d", 100), limiter.PerHour("h", 100)
	op := opOf("a", limitsOf(t, day, hour), 10)
	l.take(true, op)
	for i, limits := range []*limiter.Limits{limitsOf(t, hour), limitsOf(t, day, hour, limiter.PerMinute("m", 100)), limitsOf(t, day)} {
		op := opOf("a", limits, 1)
		op.Generation = uint64(i + 2)
		if got, err := l.store.tryOne(l.now.UnixMilli(), &op); err != nil || got.done {
			t.Errorf("change %d: taken from under limits that the file has not: %+v, %v", i, got, err)
		}
		l.write()
		l.take(true, op)
		l.kill(0)
		b := onlyBucket(t, l.store)
		if b.limits.Hash() != limits.Hash() || b.generation != op.Generation {
			t.Errorf("change %d: limits %+v of generation %d", i, b.limits, b.generation)
		}
		stale := opOf("a", limitsOf(t, limiter.PerSecond("old", 1)), 1)
		l.take(true, stale) // the spend is not held, and does not restore the old limits
		if b.limits.Hash() != limits.Hash() {
			t.Errorf("change %d: an older generation won", i)
		}
	}
	if b := onlyBucket(t, l.store); b.rest == nil || len(b.rest.dormant) == 0 {
		t.Error("a limit that was taken away, and was not full, left no balance behind")
	}
}

func TestEveryBucketOfManyComesBack(t *testing.T) {
	l := newNode(t)
	limits := limitsOf(t, limiter.PerDay("l", 10))
	ops := make([]limiter.Op, 0, 60)
	for _, entity := range []string{"a", "b", "", "\xff", strings.Repeat("long", 1000)} {
		for _, resource := range []string{"", "r", strings.Repeat("r", 300)} {
			for _, namespace := range []string{"default", "other"} {
				for variant := range uint64(2) {
					op := opOf(entity, limits, 10)
					op.Bucket.Resource, op.Bucket.Namespace, op.Bucket.Variant = resource, namespace, variant
					ops = append(ops, op)
				}
			}
		}
	}
	l.take(true, ops...)
	for _, end := range []func(time.Duration){l.kill, l.stop, l.kill} {
		end(0)
		if got := l.store.Buckets(); got != int64(len(ops)) {
			t.Fatalf("%d buckets, want %d", got, len(ops))
		}
		for i := range ops {
			ops[i].Spends[0].Take = limiter.Milli
			l.take(false, ops[i])
		}
	}
}

func TestMaxBucketsDoesNotForgetWhatTheFileHas(t *testing.T) {
	l := newNode(t)
	limits := limitsOf(t, limiter.PerDay("l", 10))
	l.take(true, opOf("a", limits, 1), opOf("b", limits, 1))
	l.kill(0)
	l.store.cfg.MaxBuckets = 1
	l.take(true, opOf("a", limits, 1), opOf("b", limits, 1))
	l.take(true, opOf("c", limits, 10))
	if got := l.store.Buckets(); got != 2 {
		t.Errorf("%d buckets, want 2", got)
	}
	l.kill(0)
	l.take(false, opOf("c", limits, 1)) // the file has its takes from the overflow bucket
}

func TestDamagedRecordsAreRefused(t *testing.T) {
	for table, key := range map[datafile.Table]string{datafile.Buckets: "\x01n\x01e\x01r12345678", datafile.Records: "\x01n\x00\x01e\x00", datafile.Settled: "\x01an", datafile.Meta: metaGeneration} {
		dir := t.TempDir()
		file, err := datafile.Open(dir, datafile.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := file.Update(func(tx *datafile.Tx) error { return tx.Put(table, []byte(key), []byte{0xff}) }); err != nil {
			t.Fatal(err)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
		if s, err := Open(dir, Config{}); !errors.Is(err, errFormat) {
			t.Errorf("table %s: opened %v, %v; want record.ErrFormat", table, s, err)
		}
		again, err := datafile.Open(dir, datafile.Options{})
		if err != nil {
			t.Fatalf("table %s: the file was left open: %v", table, err)
		}
		if err := again.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestALossIsLogged(t *testing.T) {
	dir := t.TempDir()
	l := &node{t: t, dir: dir, now: t0}
	l.begin()
	l.take(true, opOf("a", limitsOf(t, limiter.PerDay("l", 100)), 10))
	if err := l.disk.file.Close(); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	s := openTest(t, dir, Config{Now: func() time.Time { return t0 }, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if got := s.Recovery().Lost; got != 20_000 || !strings.Contains(log.String(), "tokens_at_most=20") {
		t.Errorf("lost %d, logged %q", got, log.String())
	}
}

func TestAClockSetBackIsLogged(t *testing.T) {
	for by, want := range map[time.Duration]bool{time.Hour: true, time.Minute: true, 59 * time.Second: false, -time.Hour: false} {
		dir := t.TempDir()
		l := &node{t: t, dir: dir, now: t0}
		l.begin()
		l.take(true, opOf("a", limitsOf(t, limiter.PerDay("l", 100)), 10))
		if err := l.disk.file.Close(); err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		openTest(t, dir, Config{Now: func() time.Time { return t0.Add(-by) }, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if got := strings.Contains(log.String(), "the clock is behind the data file: the downtime is not refilled\" by="+by.String()); got != want {
			t.Errorf("set back by %v: logged %q", by, log.String())
		}
	}
}
