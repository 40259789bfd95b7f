package embedded

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/embedded/datafile"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// usageOf returns the usage of an entity and a resource in the window of a time, by limit.
func usageOf(t *testing.T, s *Store, namespace, entity, resource string, w limiter.UsageWindow, at time.Time) map[string]int64 {
	t.Helper()
	start := w.Start(at)
	f := limiter.UsageFilter{Entity: entity, Resource: resource, Window: w, From: start, To: w.End(start)}
	page, err := s.ListUsage(t.Context(), namespace, f, limiter.Page{})
	if err != nil || len(page.Items) > 1 {
		t.Fatalf("usage of %s: %+v, %v", entity, page, err)
	}
	used := map[string]int64{}
	for _, u := range page.Items {
		for _, l := range u.Limits {
			used[l.Limit] = l.Tokens
		}
	}
	return used
}

// uses checks the usage of entity a and resource r in the window of a time.
func (l *node) uses(when string, w limiter.UsageWindow, at time.Time, want map[string]int64) {
	l.t.Helper()
	if diff := cmp.Diff(want, usageOf(l.t, l.store, "default", "a", "r", w, at)); diff != "" {
		l.t.Errorf("%s, %v of %v (-want +got):\n%s", when, w, at, diff)
	}
}

// usesBy checks it hour by hour, and in sum, of limit l.
func (l *node) usesBy(when string, begin time.Time, hours ...int64) {
	l.t.Helper()
	var sum int64
	for i, n := range hours {
		want := map[string]int64{"l": n * limiter.Milli}
		if n == 0 {
			want = map[string]int64{}
		}
		l.uses(when, limiter.UsageHour, begin.Add(time.Duration(i)*time.Hour+17*time.Minute), want)
		sum += n * limiter.Milli
	}
	l.uses(when, limiter.UsageDay, begin, map[string]int64{"l": sum})
	l.uses(when, limiter.UsageMonth, begin, map[string]int64{"l": sum})
}

func TestUsageByHourDayAndMonth(t *testing.T) {
	l := newNode(t)
	begin := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	l.now = begin.Add(30 * time.Minute)
	limits := limitsOf(t, limiter.PerDay("l", 10_000))
	take := func(n int64) { l.take(true, opOf("a", limits, n)) }
	take(10)
	l.usesBy("in the hour at hand", begin, 10)
	l.now = begin.Add(time.Hour) // to the millisecond
	take(5)
	l.usesBy("when the hour has turned", begin, 10, 5)
	charge := opOf("a", limits, 0)
	charge.Spends[0].Charge = 7 * limiter.Milli
	l.take(true, charge)
	refund := opOf("a", limits, 0)
	refund.Spends[0].Refund = 3 * limiter.Milli
	l.take(true, refund)
	l.take(false, opOf("a", limits, 10_001))
	other := opOf("a", limits, 100)
	other.Bucket.Variant = 1 // another bucket, the same entity and resource
	l.take(true, other)
	l.usesBy("charged, refunded, denied, and of another variant", begin, 10, 109)
	l.stop(3 * time.Hour)
	l.usesBy("after the restart", begin, 10, 109, 0)
	take(1)
	l.usesBy("after the restart, used", begin, 10, 109, 0, 0, 1)
	l.now = begin.Add(2 * time.Hour) // a caller whose clock is behind
	take(1)
	l.usesBy("by a clock that is behind", begin, 10, 109, 0, 0, 2)
	l.now = begin.Add(60 * 24 * time.Hour)
	l.store.sweep(0, shardCount, l.now.UnixMilli())
	l.write()
	if got := l.store.Buckets(); got != 0 {
		t.Errorf("%d buckets, all are full", got)
	}
	l.usesBy("when the buckets are gone", begin, 10, 109, 0, 0, 2)
	take(4)
	l.uses("the next month but one", limiter.UsageMonth, l.now, map[string]int64{"l": 4000})
	l.uses("of an unknown entity", limiter.UsageMonth, begin.Add(-40*24*time.Hour), map[string]int64{})
}

// A crash loses of the usage no more than the block, and nothing is counted twice.
func TestUsageOutlivesACrash(t *testing.T) {
	l := newNode(t)
	begin := l.now.Truncate(time.Hour)
	limits := limitsOf(t, limiter.PerDay("l", 1000))
	l.take(true, opOf("a", limits, 10)) // and the file gives 20 ahead, in a state that has these 10
	l.take(true, opOf("a", limits, 1))
	l.kill(0)
	l.usesBy("after a crash", begin, 10)
	l.take(true, opOf("a", limits, 5))
	l.now = begin.Add(time.Hour)
	l.take(true, opOf("a", limits, 30)) // writes the 15, and the 30 in the current hour
	l.kill(0)
	l.usesBy("after a crash when the hour had turned", begin, 15, 30)
	l.stop(0)
	l.usesBy("after a stop", begin, 15, 30)
}

// A commit that fails does not move usage, which stays in its hour.
func TestUsageOfACommitThatFails(t *testing.T) {
	l := newNode(t)
	begin := l.now.Truncate(time.Hour)
	limits := limitsOf(t, limiter.PerDay("l", 1000))
	l.take(true, opOf("a", limits, 10))
	for i, err := range []error{datafile.ErrFull, datafile.ErrUncertain, nil} {
		l.now = begin.Add(time.Duration(i+1) * time.Hour)
		l.take(true, opOf("a", limits, 1))
		b := onlyBucket(t, l.store)
		l.disk.want(&l.store.shards[0], 0, b)
		n := l.disk.take()
		w := l.disk.collect(n)
		if err == nil {
			err = w.save(l.disk.file)
		}
		l.disk.conclude(n, err)
	}
	l.usesBy("two of three commits failed", begin, 10, 1, 1, 1)
}

// Usage of a limit remains when the limit is removed.
func TestUsageOfALimitThatIsGone(t *testing.T) {
	l := newNode(t)
	old, now := limitsOf(t, limiter.PerDay("old", 1000)), limitsOf(t, limiter.PerDay("new", 1000), limiter.Unlimited("old"))
	l.take(true, opOf("a", old, 10))
	op := opOf("a", now, 5)
	op.Generation = 2
	l.take(true, op)
	want := map[string]int64{"old": 10_000, "new": 5000}
	l.uses("at once", limiter.UsageHour, l.now, want)
	l.kill(0)
	l.uses("after a crash", limiter.UsageHour, l.now, want)
	l.stop(48 * time.Hour)
	l.store.sweep(0, shardCount, l.now.Add(time.Hour).UnixMilli())
	l.write()
	l.uses("when the bucket is gone", limiter.UsageMonth, t0, want)
}

// A refund to an unused bucket keeps the bucket until its usage is counted.
func TestUsageOfARefundAlone(t *testing.T) {
	l := newNode(t)
	refund := opOf("a", limitsOf(t, limiter.PerDay("l", 1000)), 0)
	refund.Spends[0].Refund = 10 * limiter.Milli
	l.take(true, refund)
	l.stop(0)
	l.usesBy("after the restart", t0.Truncate(time.Hour), -10)
}

func TestUsageOfAStoreInMemory(t *testing.T) {
	s := newStore(t, Config{})
	if got := usageOf(t, s, "default", "a", "r", limiter.UsageHour, t0); len(got) > 0 {
		t.Errorf("got %v; want none", got)
	}
}

func TestDamagedUsageIsAnError(t *testing.T) {
	l := newNode(t)
	key := usageKey(limiter.UsageHour, limiter.UsageHour.Start(l.now), &usageRow{consumed: consumed{limit: "l"}, namespace: "default", entity: "a", resource: "r"})
	if err := l.disk.file.Update(func(tx *datafile.Tx) error { return tx.Put(datafile.Usage, key, []byte{1, 2, 3}) }); err != nil {
		t.Fatal(err)
	}
	if _, err := l.store.ListUsage(t.Context(), "default", limiter.UsageFilter{}, limiter.Page{}); !errors.Is(err, errFormat) {
		t.Errorf("got %v, want record.ErrFormat", err)
	}
}

// Rows of hours and days are dropped when they are old, a part at a time, and those of months stay.
func TestOldUsageIsSwept(t *testing.T) {
	l := newNode(t)
	day := 24 * time.Hour
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	rows := make([]usageRow, 0, 500)
	for i := range 500 {
		rows = append(rows, usageRow{
			consumed:  consumed{hour: hourOf(begin.Add(time.Duration(i) * day).UnixMilli()), limit: "l", amount: 1},
			namespace: "default", entity: "a", resource: "r",
		})
	}
	if err := l.disk.file.Update(func(tx *datafile.Tx) error { return addUsage(tx, rows) }); err != nil {
		t.Fatal(err)
	}
	now := begin.Add(450*day + 30*time.Minute) // retention counts from the end of a window
	for l.disk.sweepRows(now) != nil {
		l.write()
	}
	for _, tt := range []struct {
		w    limiter.UsageWindow
		at   int // days after begin
		want int64
	}{{limiter.UsageHour, 435, 0}, {limiter.UsageHour, 436, 1}, {limiter.UsageDay, 49, 0}, {limiter.UsageDay, 50, 1}, {limiter.UsageMonth, 0, 31}} {
		want := map[string]int64{}
		if tt.want > 0 {
			want["l"] = tt.want
		}
		l.uses("swept", tt.w, begin.Add(time.Duration(tt.at)*day), want)
	}
}

// One sweep drops all that is old, however much it is: else the file would grow where more
// gets old than is dropped.
func TestASweepDropsAllOldUsage(t *testing.T) {
	now := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	s := openTest(t, t.TempDir(), Config{SweepInterval: time.Hour, Now: func() time.Time { return now }})
	rows := make([]usageRow, 0, 2*(sweptRows+100))
	for i := range sweptRows + 100 {
		for _, at := range []time.Time{now.Add(-15 * 24 * time.Hour), now} {
			rows = append(rows, usageRow{
				consumed:  consumed{hour: hourOf(at.UnixMilli()), limit: "l", amount: 1},
				namespace: "default", entity: strconv.Itoa(i), resource: "r",
			})
		}
	}
	if err := s.disk.file.Update(func(tx *datafile.Tx) error { return addUsage(tx, rows) }); err != nil {
		t.Fatal(err)
	}
	before := s.disk.file.Stats().Records[datafile.Usage]
	s.sweepPart(0, nil)
	if got, want := before-s.disk.file.Stats().Records[datafile.Usage], sweptRows+100; int(got) != want {
		t.Errorf("%d rows of hours were dropped, want %d", got, want)
	}
}
