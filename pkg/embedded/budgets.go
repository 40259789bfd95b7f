package embedded

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/ratelimit/ratelimit/pkg/embedded/datafile"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Thresholds of budgets in the file, of the table of usage:
//
//	key    kind, 1 byte; begin of the window, Unix s, 8 bytes; namespace, entity, resource
//	       and limit, each with its length before it; tokens of the budget, 8 bytes
//	value  the highest threshold that was reported, in percent, 1 byte

// BudgetPause is the default pause between two comparisons of usage with budgets.
const BudgetPause = 10 * time.Second

const (
	// budgetShare is the divisor of the share of time that comparisons take at most.
	budgetShare = 20
	// lastComparison bounds the comparison at the end.
	lastComparison = time.Second
	// reportBatch is the number of budgets that one transaction marks as reported. A client that
	// invents names can make any number, and a stop waits for one transaction at most.
	reportBatch = 1000
)

// budgetTag is the first byte of the keys of reported thresholds of a window.
func budgetTag(w limiter.UsageWindow) byte { return "HDM"[w] }

// reportedAge is how long the file keeps reported thresholds, from the start of the window. It is
// longer than a month.
const reportedAge = 62 * 24 * time.Hour

// WatchBudgets compares usage with budgets until ctx is done, with a pause between comparisons, and
// once more at the end. It calls report for each threshold that usage has reached: once, also
// across restarts. budgets returns those of the configuration in force. Stored limits have budgets
// too, see [limiter.BudgetSet.Of]. pause 0 = BudgetPause. A threshold is not reported if the process
// crashes after it was marked as reported, and before the call. A store without a file has no
// usage, and returns at once. WatchBudgets is called once, and ends before Close.
func (u *usageLog) WatchBudgets(ctx context.Context, pause time.Duration, budgets func() *limiter.BudgetSet, report func(limiter.BudgetEvent)) {
	if u.disk == nil {
		return
	}
	if pause <= 0 {
		pause = BudgetPause
	}
	w := budgetWatch{usage: u, report: report, unknown: make(map[string]crossing)}
	compare := func(ctx context.Context) {
		if err := w.compare(ctx, budgets()); err != nil && ctx.Err() == nil {
			u.disk.cfg.Logger.WarnContext(ctx, "usage cannot be compared with budgets: retrying", slog.Any("error", err))
		}
	}
	for ctx.Err() == nil {
		began := time.Now()
		compare(ctx)
		timer := time.NewTimer(max(pause, (budgetShare-1)*time.Since(began)))
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
	last, stop := context.WithTimeout(context.WithoutCancel(ctx), lastComparison)
	defer stop()
	compare(last)
}

// budgetWatch compares usage with budgets. One goroutine uses it.
type budgetWatch struct {
	usage   *usageLog
	report  func(limiter.BudgetEvent)
	unknown map[string]crossing // thresholds that may have been marked as reported, by key

	set        *inForce // of the last comparison
	read       bool     // set was read, from the two below
	given      *limiter.BudgetSet
	generation uint64 // of the stored limits
}

// crossing is a budget with thresholds to report.
type crossing struct {
	key      []byte
	events   []limiter.BudgetEvent
	reported int  // before them
	value    byte // after them
}

// compare compares all usage that may have changed since the last comparison. given are the budgets
// of the configuration.
func (w *budgetWatch) compare(ctx context.Context, given *limiter.BudgetSet) error {
	w.refresh(given)
	if w.set == nil {
		w.usage.disk.moved.take(nil)
		return nil
	}
	found, err := w.crossings(ctx, w.set)
	if err != nil || len(found) == 0 {
		return err
	}
	slices.SortStableFunc(found, func(a, b crossing) int { return cmp.Compare(a.rank(), b.rank()) })
	for part := range slices.Chunk(found, reportBatch) {
		if err := w.note(ctx, part); err != nil {
			w.usage.disk.moved.again()
			return err
		}
	}
	return nil
}

// note marks thresholds as reported, and then reports them.
func (w *budgetWatch) note(ctx context.Context, found []crossing) error {
	if err := contextErr(ctx); err != nil {
		return err
	}
	changes := make([]change, len(found))
	for i, c := range found {
		changes[i] = change{datafile.Usage, c.key, []byte{c.value}}
	}
	if err := w.usage.disk.write(ctx, changes...); err != nil {
		for _, c := range found {
			w.unknown[string(c.key)] = c
		}
		return err
	}
	for _, c := range found {
		for _, e := range c.events {
			w.report(e)
		}
	}
	return nil
}

// rank is 0 for a budget of one entity, and 1 for a shared one, which is reported after those.
func (c *crossing) rank() int {
	if c.events[0].Shared {
		return 1
	}
	return 0
}

// crossings returns the budgets whose usage has reached a threshold that was not reported yet. It
// reads buckets and rows as of one moment.
func (w *budgetWatch) crossings(ctx context.Context, set *inForce) (found []crossing, err error) {
	d := w.usage.disk
	d.moving.Lock()
	release := sync.OnceFunc(d.moving.Unlock)
	defer release()
	used, err := w.usage.inBuckets(ctx, set)
	if err != nil {
		return nil, err
	}
	rows, all := d.moved.take(set)
	defer func() {
		if err != nil {
			d.moved.again()
		}
	}()
	for r := range rows {
		addCounted(used, set, limiter.ShortName(r.namespace), r.entity, r.resource, r.consumed)
	}
	err = d.file.View(func(tx *datafile.Tx) error {
		release()
		if all {
			if err := addCurrent(ctx, tx, used, set, w.usage.disk.cfg.Now()); err != nil {
				return err
			}
		}
		for of, amount := range used {
			c, err := w.crossing(tx, set, &of, amount)
			if err != nil {
				return err
			}
			if c.key != nil {
				found = append(found, c)
			}
		}
		return ctx.Err()
	})
	return found, err
}

// inBuckets sums the usage that is in buckets and in no row.
func (u *usageLog) inBuckets(ctx context.Context, set *inForce) (map[counted]int64, error) {
	used := make(map[counted]int64)
	for i := range u.table.shards {
		if err := contextErr(ctx); err != nil {
			return nil, err
		}
		sh := &u.table.shards[i]
		sh.mu.Lock()
		for _, b := range sh.buckets {
			for ; b != nil; b = b.next {
				b.consumption(func(c consumed) {
					if c.amount != 0 && set.has(c.limit) {
						addCounted(used, set, limiter.ShortName(b.namespace.Value()), b.entity, b.resource.Value(), c)
					}
				})
			}
		}
		sh.mu.Unlock()
	}
	return used, nil
}

// addCounted adds consumption to the windows of the budgets.
func addCounted(used map[counted]int64, set *inForce, namespace, entity, resource string, c consumed) {
	at := time.UnixMilli(c.hour * hourMs)
	for _, w := range set.windows {
		of := counted{namespace, entity, resource, c.limit, w, w.Start(at).Unix()}
		used[of] = limiter.SaturatingSum(used[of], c.amount)
	}
}

// addCurrent adds the windows of a time that have rows of the limits.
func addCurrent(ctx context.Context, tx *datafile.Tx, used map[counted]int64, set *inForce, now time.Time) error {
	for _, w := range set.windows {
		start := w.Start(now)
		prefix := usageBegin(w, start)
		err := tx.Each(datafile.Usage, prefix, func(key, _ []byte) error {
			r := &recordReader{Rest: key[len(prefix):]}
			of := counted{namespace: r.Text(), entity: r.Text(), resource: r.Text(), limit: r.Text(), window: w, start: start.Unix()}
			if r.Failed {
				return fmt.Errorf("a row of usage: %w", errFormat)
			}
			if set.has(of.limit) {
				used[of] += 0
			}
			return ctx.Err()
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// crossing compares usage of one limit in one window. The key is nil where there is nothing to
// report.
func (w *budgetWatch) crossing(tx *datafile.Tx, set *inForce, of *counted, amount int64) (crossing, error) {
	bucket, b, ok := set.of(of)
	if !ok {
		return crossing{}, nil
	}
	start := time.Unix(of.start, 0).UTC()
	row := usageKey(of.window, start, &usageRow{consumed{limit: of.limit}, of.namespace, of.entity, of.resource})
	before, err := usageValue(tx.Get(datafile.Usage, row))
	if err != nil {
		return crossing{}, err
	}
	total := limiter.SaturatingSum(before, amount)
	key := row
	key[0] = budgetTag(of.window)
	key = binary.BigEndian.AppendUint64(key, uint64(b.Tokens)) // #nosec G115 -- above 0
	reported := 0
	if value := tx.Get(datafile.Usage, key); len(value) == 1 {
		reported = int(value[0])
	}
	if own, ok := w.unknown[string(key)]; ok && int(own.value) == reported { // that write was made, and no threshold was reported
		reported = own.reported
	}
	delete(w.unknown, string(key))
	events := limiter.BudgetEvents(bucket, b, start, reported, total)
	if len(events) == 0 {
		return crossing{}, nil
	}
	return crossing{key: key, events: events, reported: reported, value: byte(events[len(events)-1].Percent)}, nil // #nosec G115 -- at most 100
}

// refresh applies the budgets of a configuration and of stored limits, where they have changed.
func (w *budgetWatch) refresh(given *limiter.BudgetSet) {
	generation := w.usage.catalog.generation.Load() // before the records
	same := w.read && w.given == given
	if same && w.generation == generation {
		return
	}
	next := newInForce(given, &w.usage.catalog.recordSet)
	if !same || next == nil || w.set == nil || !maps.EqualFunc(w.set.stored, next.stored, sameBudgets) {
		w.set = next
	}
	w.read, w.given, w.generation = true, given, generation
}
