package embedded

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// budgetNode is a node whose usage is compared with budgets when a test says so.
type budgetNode struct {
	*node

	set      *limiter.BudgetSet
	watch    *budgetWatch
	reported []string
}

// budgetsAt returns budgets that stand at a place.
func budgetsAt(t *testing.T, at map[limiter.Ref]limiter.Budget) *limiter.BudgetSet {
	t.Helper()
	set := make(map[limiter.Ref]*limiter.Budgets)
	for ref, b := range at {
		budgets, err := limiter.NewBudgets(b)
		if err != nil {
			t.Fatal(err)
		}
		set[ref] = budgets
	}
	return limiter.NewBudgetSet(set)
}

func newBudgetNode(t *testing.T, at map[limiter.Ref]limiter.Budget) *budgetNode {
	t.Helper()
	l := &budgetNode{node: newNode(t), set: budgetsAt(t, at)}
	l.now = time.Date(2026, 11, 21, 9, 30, 0, 0, time.UTC)
	l.again()
	return l
}

// again watches the store of a new run.
func (l *budgetNode) again() {
	l.watch = &budgetWatch{usage: l.store.usageLog, unknown: map[string]crossing{}, report: func(e limiter.BudgetEvent) {
		l.reported = append(l.reported, fmt.Sprint(e.Entity, " ", e.Window, " ", e.Start.Format("02T15"), " ", e.Percent))
	}}
}

// written calls do, which waits for the file, and writes its batches.
func (l *budgetNode) written(when string, do func() error) {
	l.t.Helper()
	var doing sync.WaitGroup
	ended := make(chan struct{})
	doing.Go(func() {
		defer close(ended)
		if err := do(); err != nil {
			l.t.Errorf("%s: %v", when, err)
		}
	})
	for done := false; !done; {
		select {
		case <-ended:
			done = true
		case <-l.disk.wake:
			l.disk.writeNext()
		}
	}
	doing.Wait()
}

// compare compares usage, and requires the events.
func (l *budgetNode) compare(when string, want ...string) {
	l.t.Helper()
	l.reported = nil
	l.written(when, func() error { return l.watch.compare(l.t.Context(), l.set) })
	slices.Sort(l.reported)
	if diff := cmp.Diff(want, l.reported); diff != "" {
		l.t.Errorf("%s (-want +got):\n%s", when, diff)
	}
}

// Each threshold is reported once in a window, across restarts and crashes. Usage of buckets and of
// rows counts, of all variants except shadows.
func TestThresholdsAreReportedOnce(t *testing.T) {
	l := newBudgetNode(t, map[limiter.Ref]limiter.Budget{
		limiter.SystemLimitsRef():                             {Limit: "l", Window: limiter.UsageDay, Tokens: 100},
		limiter.EntityLimitsRef("a", limiter.DefaultResource): {Limit: "l", Window: limiter.UsageHour, Tokens: 60},
	})
	limits := limitsOf(t, limiter.PerDay("l", 10_000))
	take := func(entity string, n int64) { l.take(true, opOf(entity, limits, n)) }
	l.compare("at first")
	take("a", 47)
	take("b", 79)
	shadow := opOf("b", limits, 500)
	shadow.Bucket.Variant = limiter.ShadowVariants
	l.take(true, shadow)
	l.compare("below all thresholds, but for a shadow")
	take("a", 1)
	variant := opOf("b", limits, 1)
	variant.Bucket.Variant = 7
	l.take(true, variant)
	l.compare("at 80 %", "a hour 21T09 80", "b day 21T00 80")
	l.compare("with nothing new")
	refund := opOf("a", limits, 0)
	refund.Spends[0].Refund = 20 * limiter.Milli
	l.take(true, refund)
	take("a", 20)
	l.compare("after a refund that is used again")
	l.stop(time.Minute)
	l.again()
	l.compare("after the restart")
	take("b", 500)
	take("a", 31)
	l.compare("above all at once", "a hour 21T09 100", "a hour 21T09 95", "b day 21T00 100", "b day 21T00 95")
	l.kill(time.Minute)
	l.again()
	l.compare("after a crash")
	l.now = l.now.Add(24 * time.Hour)
	take("b", 100)
	l.compare("on the next day", "b day 22T00 100", "b day 22T00 80", "b day 22T00 95")
}

// Usage that moves to rows between two comparisons is compared, also that of a window that is over.
func TestThresholdsOfRows(t *testing.T) {
	l := newBudgetNode(t, map[limiter.Ref]limiter.Budget{limiter.SystemLimitsRef(): {Limit: "l", Window: limiter.UsageHour, Tokens: 100}})
	limits := limitsOf(t, limiter.PerDay("l", 10_000))
	l.compare("at first")
	l.take(true, opOf("a", limits, 85))
	l.now = l.now.Add(time.Hour)
	l.take(true, opOf("a", limits, 5))
	l.store.sweep(0, shardCount, l.now.UnixMilli())
	l.write()
	l.compare("in the next hour", "a hour 21T09 80")
	l.take(true, opOf("b", limits, 96))
	l.stop(time.Minute) // moves nothing: the bucket is not full
	l.again()
	l.compare("after the restart", "b hour 21T10 80", "b hour 21T10 95")
}

// put stores limits with a budget of l for each day; 0 = without one.
func (l *budgetNode) put(namespace string, ref limiter.Ref, tokens int64) {
	l.t.Helper()
	r := limiter.Record{Limits: limitsOf(l.t, limiter.PerDay("l", 10_000))}
	if tokens > 0 {
		r.Budgets = budgetsAt(l.t, map[limiter.Ref]limiter.Budget{ref: {Limit: "l", Window: limiter.UsageDay, Tokens: tokens}}).At(ref)
	}
	l.written("limits", func() error { return l.store.PutLimits(l.t.Context(), namespace, ref, r) })
}

// Budgets of stored limits hold as soon as they are stored, also after a restart and for long
// names. They replace those of the configuration at the same place, also where they are empty.
func TestThresholdsOfStoredLimits(t *testing.T) {
	l := newBudgetNode(t, map[limiter.Ref]limiter.Budget{
		limiter.ResourceLimitsRef("r"): {Limit: "l", Window: limiter.UsageDay, Tokens: 100},
	})
	long := strings.Repeat("e", 2*limiter.MaxShownName)
	limits := limitsOf(t, limiter.PerDay("l", 10_000))
	for _, entity := range []string{"a", "b", long} {
		l.take(true, opOf(entity, limits, 50))
	}
	l.compare("below the budget of the configuration")
	namespace := opOf("a", limits, 0).Bucket.Namespace
	l.put(namespace, limiter.EntityLimitsRef("a", "r"), 60)
	l.put("another", limiter.EntityLimitsRef("b", "r"), 10)
	l.put(namespace, limiter.EntityLimitsRef(long, limiter.DefaultResource), 50)
	short := limiter.ShortName(long)
	l.compare("with stored budgets", "a day 21T00 80", short+" day 21T00 100", short+" day 21T00 80", short+" day 21T00 95")
	l.compare("the same again")
	l.take(true, opOf("b", limits, 35))
	l.compare("by the configuration", "b day 21T00 80")
	l.put(namespace, limiter.ResourceLimitsRef("r"), 0)
	l.take(true, opOf("b", limits, 35))
	l.compare("with stored limits in the place of the configuration's")
	l.stop(time.Minute)
	l.again()
	l.take(true, opOf("a", limits, 7))
	l.compare("after the restart", "a day 21T00 95")
	l.put(namespace, limiter.ResourceLimitsRef("r"), 120)
	l.compare("with another budget", "b day 21T00 100", "b day 21T00 80", "b day 21T00 95")
}

// A stored quota that denies in place of a budget of the configuration has the thresholds.
func TestThresholdsOfStoredQuotas(t *testing.T) {
	l := newBudgetNode(t, map[limiter.Ref]limiter.Budget{limiter.SystemLimitsRef(): {Limit: "l", Window: limiter.UsageDay, Tokens: 1000}})
	limits := limitsOf(t, limiter.PerDay("l", 10_000))
	l.take(true, opOf("a", limits, 40))
	l.take(true, opOf("b", limits, 40))
	quota := limiter.Record{Limits: limitsOf(t, limiter.Quota("l.day", 50, limiter.Calendar{Unit: limiter.CalendarDay}))}
	l.written("a quota", func() error {
		return l.store.PutLimits(t.Context(), opOf("a", limits, 0).Bucket.Namespace, limiter.EntityLimitsRef("a", limiter.DefaultResource), quota)
	})
	l.compare("with a stored quota", "a day 21T00 80")
}

// A running store reports by itself, and stops with its context. Without a file there is no usage.
func TestWatchBudgets(t *testing.T) {
	set := budgetsAt(t, map[limiter.Ref]limiter.Budget{limiter.SystemLimitsRef(): {Limit: "l", Window: limiter.UsageMonth, Tokens: 10}})
	s := openTest(t, t.TempDir(), Config{})
	ctx, stop := context.WithCancel(t.Context())
	events := make(chan limiter.BudgetEvent)
	var watching sync.WaitGroup
	watching.Go(func() {
		s.WatchBudgets(ctx, time.Millisecond, func() *limiter.BudgetSet { return set }, func(e limiter.BudgetEvent) { events <- e })
	})
	if _, err := s.Take(t.Context(), time.Now(), []limiter.Op{opOf("a", limitsOf(t, limiter.PerDay("l", 1000)), 9)}); err != nil {
		t.Fatal(err)
	}
	if e := <-events; e.Percent != 80 || e.Entity != "a" || e.Tokens != 10 || e.Used != 9000 {
		t.Errorf("%+v", e)
	}
	stop()
	watching.Wait()
	memory := New(Config{})
	memory.WatchBudgets(t.Context(), 0, nil, nil)
	if err := memory.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
