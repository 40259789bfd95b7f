package aggregator

import (
	"context"
	"crypto/rand"
	"iter"
	"log/slog"
	"sync"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Notes keeps the thresholds of budgets that were reported of snapshots.
type Notes interface {
	// Note notes marks in a snapshot, in the name of a write. It is not done where the snapshot has
	// one of them. It returns the snapshot as it is then. On an error the outcome may be unknown.
	Note(ctx context.Context, s *Snapshot, marks []Mark, by string) (done bool, now Standing, err error)
	// NamespaceName returns the name of the namespace with an id; "" = there is none now, or its record cannot be read.
	NamespaceName(ctx context.Context, id string) (string, error)
	// StoredBudgets returns the limits that are stored at the places of a bucket. They may be a minute
	// old.
	StoredBudgets(ctx context.Context, of Bucket) (limiter.StoredBudgets, error)
}

// Comparison compares snapshots with budgets. Each threshold is reported once: by the process whose
// conditional write has noted it in the snapshot. A process that crashes between that write and tell has
// not reported it. It is safe for concurrent use.
type Comparison struct {
	Logger *slog.Logger // nil = none; set before the first call

	notes   Notes
	budgets func() *limiter.BudgetSet
	tell    func(limiter.BudgetEvent)

	mu       sync.Mutex
	unknown  map[string]bool // writes of Note whose outcome is not known
	nameless map[string]bool // ids of namespaces that the log has as without a name
}

// maxUnknown bounds the writes of unknown outcome that are remembered. The events of others may be
// lost.
const maxUnknown = 10_000

// NewComparison returns a comparison with budgets: those of the configuration in force then, and those
// of stored limits. tell is called for each event. Both are called by several goroutines at once, and
// must not block.
func NewComparison(notes Notes, budgets func() *limiter.BudgetSet, tell func(limiter.BudgetEvent)) *Comparison {
	return &Comparison{notes: notes, budgets: budgets, tell: tell, unknown: make(map[string]bool), nameless: make(map[string]bool)}
}

// Compare compares limits of a snapshot, which stands so. On an error it is to be called again.
func (t *Comparison) Compare(ctx context.Context, s *Snapshot, limits iter.Seq[string], now Standing) error {
	stored, err := t.notes.StoredBudgets(ctx, s.Bucket)
	if err != nil {
		return err
	}
	of, budgets := limiter.BudgetBucket{Entity: now.Entity, Resource: now.Resource}, t.budgets()
	for limit := range limits {
		b, from := budgets.Of(&of, limit, s.Window, &stored)
		if from == limiter.SourceNone {
			continue
		}
		of.Namespace, err = t.name(ctx, s.Bucket.Namespace)
		if err == nil && of.Namespace != "" {
			err = t.compare(ctx, s, of, b, now)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// name returns the name of a namespace. A namespace without one is logged once, until it has
// one.
func (t *Comparison) name(ctx context.Context, id string) (string, error) {
	name, err := t.notes.NamespaceName(ctx, id)
	if err != nil {
		return "", err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	told := t.nameless[id]
	delete(t.nameless, id)
	if name == "" && len(t.nameless) < maxUnknown {
		t.nameless[id] = true
		if !told && t.Logger != nil {
			t.Logger.WarnContext(ctx, "a namespace is gone, or its record cannot be read: its budgets are not compared", "id", id)
		}
	}
	return name, nil
}

// compare notes and reports the thresholds of a budget that usage has reached.
func (t *Comparison) compare(ctx context.Context, s *Snapshot, of limiter.BudgetBucket, b limiter.Budget, now Standing) error {
	for {
		var missing []Mark
		var reached []limiter.BudgetEvent
		for _, p := range limiter.BudgetThresholds() {
			m, e := Mark{b.Limit, b.Tokens, p}, limiter.NewBudgetEvent(of, b, s.Start, p, now.Used[b.Limit])
			switch by := now.Told[m]; {
			case by != "" && t.own(by):
				t.tell(e)
			case by == "" && p <= limiter.ReachedPercent(b.Tokens, e.Used):
				missing, reached = append(missing, m), append(reached, e)
			}
		}
		t.known(b, now)
		if len(missing) == 0 {
			return nil
		}
		by := rand.Text()
		done, then, err := t.notes.Note(ctx, s, missing, by)
		if err != nil {
			t.remember(by)
			return err
		}
		if done {
			for _, e := range reached {
				t.tell(e)
			}
			return nil
		}
		now = then
	}
}

// own reports whether a write of this process with an unknown outcome has the name.
func (t *Comparison) own(by string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.unknown[by]
}

// known forgets the writes that are seen in a snapshot, of marks of a budget.
func (t *Comparison) known(b limiter.Budget, s Standing) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range limiter.BudgetThresholds() {
		delete(t.unknown, s.Told[Mark{b.Limit, b.Tokens, p}])
	}
}

func (t *Comparison) remember(by string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.unknown) < maxUnknown {
		t.unknown[by] = true
	}
}
