package embedded

import (
	"bytes"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// eventsIn returns the events of an entity and resource r in the window of a time.
func eventsIn(t *testing.T, s *Store, entity string, w limiter.UsageWindow, at time.Time) (events int64) {
	t.Helper()
	start := w.Start(at)
	page, err := s.ListUsage(t.Context(), "default", limiter.UsageFilter{Entity: entity, Resource: "r", Window: w, From: start, To: w.End(start)}, limiter.Page{})
	if err != nil || len(page.Items) > 1 {
		t.Fatalf("usage of %s: %+v, %v", entity, page, err)
	}
	for _, u := range page.Items {
		events += u.Events
	}
	return events
}

// counts checks the events of entity a, hour by hour and in sum.
func (l *node) counts(when string, begin time.Time, hours ...int64) {
	l.t.Helper()
	var sum int64
	for i, want := range hours {
		if got := eventsIn(l.t, l.store, "a", limiter.UsageHour, begin.Add(time.Duration(i)*time.Hour)); got != want {
			l.t.Errorf("%s: %d events in hour %d, want %d", when, got, i, want)
		}
		sum += want
	}
	for _, w := range []limiter.UsageWindow{limiter.UsageDay, limiter.UsageMonth} {
		if got := eventsIn(l.t, l.store, "a", w, begin); got != sum {
			l.t.Errorf("%s: %d events of the %v, want %d", when, got, w, sum)
		}
	}
}

// An op is one event if it changes the usage of its bucket, for any number of limits.
func TestEventsAreOpsThatChangeUsage(t *testing.T) {
	l := newNode(t)
	begin := l.now.Truncate(time.Hour)
	limits := limitsOf(t, limiter.PerDay("day", 100), limiter.PerHour("hour", 100))
	spend := func(change func(day, hour *limiter.Spend)) limiter.Op {
		op := opOf("a", limits, 0)
		change(&op.Spends[0], &op.Spends[1])
		return op
	}
	variant := opOf("a", limits, 1)
	variant.Bucket.Variant = 1
	for _, step := range []struct {
		name     string
		admitted bool
		ops      []limiter.Op
		want     int64
	}{
		{"two limits", true, []limiter.Op{opOf("a", limits, 1)}, 1},
		{"one of two limits", true, []limiter.Op{spend(func(day, _ *limiter.Spend) { day.Take = limiter.Milli })}, 2},
		{"a peek", true, []limiter.Op{spend(func(day, _ *limiter.Spend) { day.Look = true })}, 2},
		{"nothing", true, []limiter.Op{opOf("a", limits, 0)}, 2},
		{"a denial", false, []limiter.Op{opOf("a", limits, 101)}, 2},
		{"a denial with a charge", false, []limiter.Op{spend(func(day, hour *limiter.Spend) { day.Take, hour.Charge = 101*limiter.Milli, 1 })}, 3},
		{"a refund", true, []limiter.Op{spend(func(day, _ *limiter.Spend) { day.Refund = 1 })}, 4},
		{"a refund of the same amount", true, []limiter.Op{spend(func(day, _ *limiter.Spend) { day.Take, day.Refund = 5, 5 })}, 4},
		{"a charge and a refund that even out", true, []limiter.Op{spend(func(day, _ *limiter.Spend) { day.Charge, day.Refund = 5, 5 })}, 4},
		{"limits that even out each other", true, []limiter.Op{spend(func(day, hour *limiter.Spend) { day.Take, hour.Refund = 5, 5 })}, 5},
		{"two buckets of the entity", true, []limiter.Op{opOf("a", limits, 1), variant}, 7},
		{"another entity", true, []limiter.Op{opOf("b", limits, 1)}, 7},
	} {
		l.take(step.admitted, step.ops...)
		l.counts(step.name, begin, step.want)
	}
	if got := eventsIn(t, l.store, "b", limiter.UsageHour, begin); got != 1 {
		t.Errorf("%d events of the other entity, want 1", got)
	}
}

// A crash loses events as it loses usage, and none is counted twice.
func TestEventsOutliveACrash(t *testing.T) {
	l := newNode(t)
	begin := l.now.Truncate(time.Hour)
	limits := limitsOf(t, limiter.PerDay("l", 1000))
	l.take(true, opOf("a", limits, 10)) // and the file gives 20 ahead, in a state that has this event
	l.take(true, opOf("a", limits, 1))
	l.counts("before the restart", begin, 2)
	l.kill(0)
	l.counts("after a crash", begin, 1)
	l.take(true, opOf("a", limits, 5))
	l.now = begin.Add(time.Hour)
	l.counts("when the hour has turned", begin, 2, 0)
	l.take(true, opOf("a", limits, 30)) // writes both, and one in the current hour
	l.kill(0)
	l.counts("after a crash when the hour had turned", begin, 2, 1)
	l.stop(0)
	l.counts("after a stop", begin, 2, 1)
	l.now = begin.Add(60 * 24 * time.Hour)
	l.store.sweep(0, shardCount, l.now.UnixMilli())
	l.write()
	if got := l.store.Buckets(); got != 0 {
		t.Errorf("%d buckets, all are full", got)
	}
	l.counts("when the bucket is gone", begin, 2, 1)
}

// Usage that sums to 0 has events.
func TestEventsOfUsageThatEvensOut(t *testing.T) {
	l := newNode(t)
	limits := limitsOf(t, limiter.PerDay("l", 1000))
	refund := opOf("a", limits, 0)
	refund.Spends[0].Refund = 10 * limiter.Milli
	l.take(true, opOf("a", limits, 10))
	l.take(true, refund)
	l.stop(0)
	l.counts("after the restart", t0.Truncate(time.Hour), 2)
}

func TestAdjustmentsAreNoEvents(t *testing.T) {
	s := openAt(t, t.TempDir(), t0)
	op := opOf("a", limitsOf(t, limiter.PerDay("l", 100)), 40)
	mustTake(t, s, t0, true, op)
	if out, err := s.AdjustBucket(t.Context(), t0, limiter.Adjustment{Bucket: op.Bucket, Kind: limiter.AdjustTopUp, Tokens: 10_000}); err != nil || !out.Found {
		t.Fatalf("%+v, %v", out, err)
	}
	if got := eventsIn(t, s, "a", limiter.UsageHour, t0); got != 1 {
		t.Errorf("%d events, want 1", got)
	}
}

// A restore has the events of the backup. In the current hour it keeps those of the store if they
// are more.
func TestEventsOfABackup(t *testing.T) {
	limits := limitsOf(t, limiter.PerDay("l", 1000))
	take := func(s *Store, entity string, at time.Time, times int) {
		for range times {
			mustTake(t, s, at, true, opOf(entity, limits, 1))
		}
	}
	earlier, now := t0, t0.Add(time.Hour)
	dir := t.TempDir()
	s := openAt(t, dir, now)
	take(s, "more in the backup", earlier, 4)
	take(s, "more in the backup", now, 3)
	take(s, "more in the store", now, 1)
	data := backupOf(t, dir, s)

	s = openAt(t, t.TempDir(), now)
	take(s, "more in the backup", earlier, 1)
	take(s, "more in the backup", now, 1)
	take(s, "more in the store", now, 2)
	if err := s.Restore(t.Context(), bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		entity string
		at     time.Time
		events int64
	}{{"more in the backup", earlier, 4}, {"more in the backup", now, 3}, {"more in the store", now, 2}} {
		if got := eventsIn(t, s, want.entity, limiter.UsageHour, want.at); got != want.events {
			t.Errorf("%s: %d events at %v, want %d", want.entity, got, want.at, want.events)
		}
	}
}
