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

	"github.com/ratelimit/ratelimit/pkg/embedded/internal/record"

	"github.com/ratelimit/ratelimit/internal/shortname"
	"github.com/ratelimit/ratelimit/pkg/budget"
	"github.com/ratelimit/ratelimit/pkg/embedded/datafile"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Thresholds of budgets in the file, of the table of usage:
//
//	key    kind, 1 byte; begin of the window, Unix s, 8 bytes; namespace, entity, resource
//	       and limit, each with its length before it; tokens of the budget, 8 bytes
//	value  the highest threshold that was told, in percent, 1 byte

// BudgetPause is how long usage is not compared with budgets after it was.
const BudgetPause = 10 * time.Second

const (
	// budgetShare is the part of the time that comparisons take at most.
	budgetShare = 20
	// lastComparison bounds the comparison at the end.
	lastComparison = time.Second
	// reportBatch is how many budgets are written as told in one transaction: a client that invents names makes any
	// number, and a stop waits for one transaction at most.
	reportBatch = 1000
)

// budgetTag is the first byte of the keys of what was told of a window.
func budgetTag(w limiter.UsageWindow) byte { return "HDM"[w] }

// reportedAge is how long the file keeps what was told, from the start of the window: longer than a month.
const reportedAge = 62 * 24 * time.Hour

// WatchBudgets compares usage with budgets until ctx is done, again and again after a pause, and once more at the
// end. It calls tell for each threshold that usage has reached: once, also across restarts. budgets returns those of the
// configuration in force; stored limits have budgets too, see [budget.Set.Of]. pause 0 = BudgetPause. A process that
// dies after it has written that a threshold was told, and before tell, has told nothing. A store without a file keeps
// no usage, and returns at once. It is called once, and ends before Close.
func (u *usageLog) WatchBudgets(ctx context.Context, pause time.Duration, budgets func() *budget.Set, tell func(budget.Event)) {
	if u.disk == nil {
		return
	}
	if pause <= 0 {
		pause = BudgetPause
	}
	w := budgetWatch{usage: u, tell: tell, unknown: make(map[string]crossing)}
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

// budgetWatch compares usage with budgets. It is of one goroutine.
type budgetWatch struct {
	usage   *usageLog
	tell    func(budget.Event)
	unknown map[string]crossing // what may have been written as told, by key

	set        *inForce // of the last comparison
	read       bool     // set was read, from the two below
	given      *budget.Set
	generation uint64 // of the stored limits
}

// crossing is a budget of which more is to be told.
type crossing struct {
	key    []byte
	events []budget.Event
	told   int  // before them
	value  byte // after them
}

// compare compares all usage that may have changed since the last time. given are the budgets of the
// configuration.
func (w *budgetWatch) compare(ctx context.Context, given *budget.Set) error {
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

// note writes that thresholds were told, and tells them.
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
			w.tell(e)
		}
	}
	return nil
}

// rank is 0 for a budget that the entity has for itself, and else 1: it waits for the others.
func (c *crossing) rank() int {
	if c.events[0].Shared {
		return 1
	}
	return 0
}

// crossings returns the budgets whose usage has reached a threshold that was not told yet. It sees buckets and
// rows as of one moment.
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
		addCounted(used, set, shortname.Of(r.namespace), r.entity, r.resource, r.consumed)
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

// inBuckets adds up the usage that buckets have and no row.
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
						addCounted(used, set, shortname.Of(b.namespace.Value()), b.entity, b.resource.Value(), c)
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
			r := &record.Reader{Rest: key[len(prefix):]}
			of := counted{namespace: r.Text(), entity: r.Text(), resource: r.Text(), limit: r.Text(), window: w, start: start.Unix()}
			if r.Failed {
				return fmt.Errorf("a row of usage: %w", record.ErrFormat)
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

// crossing compares usage of one limit in one window; the key is nil where there is nothing to tell.
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
	told := 0
	if value := tx.Get(datafile.Usage, key); len(value) == 1 {
		told = int(value[0])
	}
	if own, ok := w.unknown[string(key)]; ok && int(own.value) == told { // that write was made, and nothing was told
		told = own.told
	}
	delete(w.unknown, string(key))
	events := budget.Events(bucket, b, start, told, total)
	if len(events) == 0 {
		return crossing{}, nil
	}
	return crossing{key: key, events: events, told: told, value: byte(events[len(events)-1].Percent)}, nil // #nosec G115 -- at most 100
}

// refresh puts the budgets of a configuration and of stored limits in force, where they have changed.
func (w *budgetWatch) refresh(given *budget.Set) {
	generation := w.usage.catalog.generation.Load() // before the records
	same := w.read && w.given == given
	if same && w.generation == generation {
		return
	}
	next := newInForce(given, &w.usage.catalog.recordSet)
	if !same || next == nil || w.set == nil || !maps.EqualFunc(w.set.stored, next.stored, (*limiter.Budgets).Equal) {
		w.set = next
	}
	w.read, w.given, w.generation = true, given, generation
}
