package catalog

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/ratelimit/ratelimit/pkg/aggregator"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

const (
	// DefaultBudgetPause is the pause between two comparisons.
	DefaultBudgetPause = 5 * time.Second
	// comparisonShare is the divisor of the share of time that comparisons take at most.
	comparisonShare = 5
	// maxChanged is how many snapshots wait for the next comparison. The next round finds those beyond.
	maxChanged = 50_000
	// maxTold is how many events are remembered: those of a server that comes back older are not told again.
	maxTold = 10_000
)

// BudgetWatchConfig configures a watch. Items, Table and Now must be set.
type BudgetWatchConfig struct {
	Items  awsdb.Items
	Table  string
	Now    func() time.Time // the wall clock
	Logger *slog.Logger     // nil = none
}

// BudgetWatch compares usage with budgets, in a table whose writes count usage by themselves. It is safe for
// concurrent use. Create it with [NewBudgetWatch].
type BudgetWatch struct {
	cfg        BudgetWatchConfig
	notes      *BudgetNotes
	told       *lru.Cache[string, struct{}] // ids of events of this process
	budgets    func() *limiter.BudgetSet
	report     func(limiter.BudgetEvent)
	comparison *aggregator.Comparison
	running    atomic.Bool // the fields above are set

	mu      sync.Mutex
	changed map[schema.Key]struct{} // snapshots of hours that were written since they were compared
	missed  time.Time               // so were others, the last of them then; zero = none, since the last round
	failing bool                    // the last comparison, in the log
}

// NewBudgetWatch returns a watch, which compares while [BudgetWatch.Run] runs.
func NewBudgetWatch(cfg BudgetWatchConfig) (*BudgetWatch, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	told, err := lru.New[string, struct{}](maxTold)
	return &BudgetWatch{cfg: cfg, notes: NewBudgetNotes(cfg.Items, cfg.Table, cfg.Now), told: told}, err
}

// Changed notes the snapshot of an hour that a write has changed, or may have. The longer windows have
// changed with it.
func (w *BudgetWatch) Changed(k schema.Key) {
	if w.running.Load() {
		w.add(k)
	}
}

// add notes snapshots that are to be compared.
func (w *BudgetWatch) add(keys ...schema.Key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.changed == nil {
		w.changed = make(map[schema.Key]struct{})
	}
	for _, k := range keys {
		if _, there := w.changed[k]; !there && len(w.changed) >= maxChanged {
			w.missed = w.cfg.Now()
			return
		}
		w.changed[k] = struct{}{}
	}
}

// take returns the snapshots to compare.
func (w *BudgetWatch) take() []schema.Key {
	w.mu.Lock()
	defer w.mu.Unlock()
	keys := slices.Collect(maps.Keys(w.changed))
	w.changed = nil
	return keys
}

// Run compares usage with budgets until ctx is done, with a pause between comparisons; 0 = DefaultBudgetPause.
// It calls report for each threshold that usage has reached: once over all processes. budgets returns
// those of the configuration in force. Stored limits have budgets too. A threshold is not reported if
// the process crashes after it was noted, and before the call. Run is called once.
func (w *BudgetWatch) Run(ctx context.Context, pause time.Duration, budgets func() *limiter.BudgetSet, report func(limiter.BudgetEvent)) {
	if pause <= 0 {
		pause = DefaultBudgetPause
	}
	w.budgets, w.report = budgets, report
	w.comparison = aggregator.NewComparison(w.notes, budgets, w.tell)
	w.comparison.Logger = w.cfg.Logger
	w.running.Store(true)
	var rounds sync.WaitGroup
	rounds.Go(func() { w.goRound(ctx) })
	for next := pause; (awsdb.Goroutines{}).Sleep(ctx, next) == nil; {
		began := time.Now()
		w.compareChanged(ctx)
		next = max(pause, (comparisonShare-1)*time.Since(began))
	}
	rounds.Wait()
}

// Finish compares the snapshots that have changed since the last comparison. It is called after Run, when no further
// write is made.
func (w *BudgetWatch) Finish(ctx context.Context) {
	if w.running.Load() {
		w.compareChanged(ctx)
		w.running.Store(false)
	}
}

// tell reports an event, unless this process has reported it: a server that comes back older has lost
// the note of that.
func (w *BudgetWatch) tell(e limiter.BudgetEvent) {
	if told, _ := w.told.ContainsOrAdd(e.ID(), struct{}{}); !told {
		w.report(e)
	}
}

// compareChanged compares the snapshots that have changed. Those that cannot be compared now are compared
// the next time.
func (w *BudgetWatch) compareChanged(ctx context.Context) {
	keys, set := w.take(), newBudgetsInForce(w.budgets())
	if len(keys) == 0 {
		return
	}
	for len(keys) > 0 {
		n := min(len(keys), comparedTogether)
		err := w.compare(ctx, set, keys[:n])
		if err != nil {
			w.fails(ctx, err)
			if !errors.Is(err, limiter.ErrInvalid) { // else no further try helps
				w.add(keys...)
				return
			}
		}
		keys = keys[n:]
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failing = false
}

// fails logs the first of comparisons that fail one after the other.
func (w *BudgetWatch) fails(ctx context.Context, err error) {
	w.mu.Lock()
	failing := w.failing
	w.failing = true
	w.mu.Unlock()
	if !failing && ctx.Err() == nil {
		w.cfg.Logger.WarnContext(ctx, "usage cannot be compared with budgets: retrying", slog.Any("error", err))
	}
}
