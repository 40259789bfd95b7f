package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/catalog"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/lane"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Store is a limiter.Store in a table. It is safe for concurrent use. Create it with [NewStore].
type Store struct {
	*catalog.Catalog // entities, limits, audit events, namespaces

	cfg         StoreConfig
	guard       *awsdb.Guard
	engine      atomic.Pointer[Engine]  // buckets
	before      lane.Predecessors       // of the engine
	healing     atomic.Pointer[healing] // nil = there is nothing to heal
	renewing    sync.WaitGroup          // the ends of engines before, and the healing
	settlements *catalog.Settlements
	reports     *catalog.Reports
	progress    *catalog.Progress
	balances    *Balances
	budget      time.Duration // of a settlement

	mu      sync.Mutex
	leaving []*Engine // those before this one that have not ended yet
	past    Stats     // of those that have
	last    *healing  // the newest one; nil = there was none
	// histories counts the calls of Renew, and healedBuckets the buckets that were healed after them.
	histories     int64
	healedBuckets atomic.Int64
	closed        bool
	calls         sync.WaitGroup  // settlements and secrets in flight
	stopped       context.Context //nolint:containedctx // of these calls: done when Close gives up on them
	stop          context.CancelFunc
}

var _ limiter.Store = (*Store)(nil)

// NewStore returns a store on the items of a table, which must exist. It sends nothing. Its errors wrap
// limiter.ErrInvalid.
func NewStore(items awsdb.Items, cfg StoreConfig) (*Store, error) {
	if items == nil || cfg.Table == "" {
		return nil, fmt.Errorf("%w: a store needs the items and the name of a table", limiter.ErrInvalid)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	s := &Store{cfg: cfg}
	s.guard = awsdb.NewGuard(items, awsdb.GuardConfig{Now: cfg.Now, Loop: awsdb.Goroutines{}, Observe: cfg.Observe, Logger: cfg.Logger, Part: cfg.Part, Parts: cfg.Parts})
	namespaceID := func(ctx context.Context, name string) (string, error) { return s.NamespaceID(ctx, name) }
	of := s.guard
	if cfg.Buckets != nil {
		of = s.guard.For(cfg.Buckets)
	}
	buckets, err := New(Config{StoreConfig: cfg, Items: of, Namespace: namespaceID, Before: &s.before})
	if err != nil {
		return nil, err
	}
	s.engine.Store(buckets)
	attempt, budget := buckets.Timeouts()
	s.budget = budget
	corrected := func() time.Time { return cfg.Clock.Correct(cfg.Now()) }
	s.Catalog = catalog.New(catalog.Config{
		Items: s.guard, Table: cfg.Table, Logger: cfg.Logger, AuditRetention: cfg.AuditRetention, PurgeWait: cfg.PurgeWait, Generation: cfg.Generation,
		Now: corrected,
	})
	s.settlements = catalog.NewSettlements(catalog.SettlementsConfig{
		Items: s.guard, Table: cfg.Table, Now: cfg.Now, Attempt: attempt, NamespaceID: namespaceID,
	})
	s.reports, s.progress = catalog.NewReports(s.guard, cfg.Table, corrected), catalog.NewProgress(s.guard, cfg.Table, corrected)
	s.balances = NewBalances(BalancesConfig{
		Items: s.guard, Table: cfg.Table, Buckets: catalog.NewBuckets(s.Catalog), Engine: func() Observer { return s.engine.Load() }, Clock: cfg.Clock, Now: cfg.Now,
	})
	s.stopped, s.stop = context.WithCancel(context.Background())
	return s, nil
}

// Capabilities implements limiter.Store.
func (s *Store) Capabilities() limiter.BackendCapabilities {
	return limiter.BackendCapabilities{AuditLogging: true, UsageSnapshots: true, BatchOperations: true}
}

// Take implements limiter.Store. All buckets are taken from at once. The takes are
// rolled back when one of them denies, also when the caller has left. The call does not
// wait for that. Until then other requests can be denied for want of these tokens. They
// stay taken after a crash, or when the reply to the rollback is lost.
//
// When the context's deadline passes while the server answers, the call is decided late: by
// an estimate of this process, without an error, and with Op.Late set.
func (s *Store) Take(ctx context.Context, now time.Time, ops []limiter.Op) (bool, error) {
	for {
		e := s.engine.Load()
		if h := s.healing.Load(); h != nil {
			if err := h.before(ctx, ops); err != nil { // rule: a bucket is healed before it is taken from
				return false, err
			}
		}
		admitted, err := e.Take(ctx, now, ops)
		if err == nil || s.engine.Load() == e || ctx.Err() != nil || !unapplied(err) {
			return admitted, err
		} // another engine is there
	}
}

// unapplied reports whether nothing of a call that failed is applied, and an engine that follows may decide it.
func unapplied(err error) bool {
	ended := errors.Is(err, limiter.ErrUnavailable) || errors.Is(err, limiter.ErrClosed)
	return ended && !errors.Is(err, limiter.ErrUncertain) // rule: a call in doubt is not made again
}

// Shards returns the indexes of the shards of a bucket, in order, as this process last saw
// them. First is the one that its next request is sent to. A bucket that was never split, or
// never asked for, has the shard 0 alone. Errors are those of Take.
func (s *Store) Shards(ctx context.Context, bucket limiter.BucketKey) (all []int, first int, err error) {
	return s.engine.Load().Shards(ctx, bucket)
}

// Settle implements limiter.Store by one conditional write, within the budget of a
// decision.
func (s *Store) Settle(ctx context.Context, now time.Time, m limiter.Mark) (bool, error) {
	ctx, end, err := s.begin(ctx, s.budget)
	if err != nil {
		return false, err
	}
	defer end()
	return s.settlements.Settle(ctx, now, m)
}

// Secret implements limiter.Store by one conditional write. No decision waits for it: it
// may take as long as a change.
func (s *Store) Secret(ctx context.Context, name string, candidate []byte) ([]byte, error) {
	ctx, end, err := s.begin(ctx, catalog.ChangeTimeout)
	if err != nil {
		return nil, err
	}
	defer end()
	return s.settlements.Secret(ctx, name, candidate)
}

// begin begins a settlement, or a call for a secret: the context that it returns is bounded
// by a budget, and ends when Close gives up. The caller calls end.
func (s *Store) begin(ctx context.Context, budget time.Duration) (bounded context.Context, end func(), err error) {
	if err := awsdb.ContextError(ctx); err != nil {
		return nil, nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, nil, limiter.ErrClosed
	}
	s.calls.Add(1)
	bounded, cancel := context.WithTimeout(ctx, budget)
	unhook := context.AfterFunc(s.stopped, cancel)
	return bounded, func() {
		unhook()
		cancel()
		s.calls.Done()
	}, nil
}

// State returns whether the server answers.
func (s *Store) State() awsdb.State { return s.guard.State() }

// FailingSince returns when the server began to fail: the time of the first failed call since
// the last answer, or of the first of the outage. It is zero while calls are answered.
func (s *Store) FailingSince() time.Time { return s.guard.FailingSince() }

// Stats returns the counts so far.
func (s *Store) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := s.engine.Load().Stats().After(s.past)
	for _, e := range s.leaving {
		stats = stats.After(e.Stats())
	}
	stats.Histories, stats.Healed = s.histories, s.healedBuckets.Load()
	return stats
}

// Close implements limiter.Store. It returns the leases, and waits for the calls in
// flight and for writes that this process still owes the table, until ctx is done. Then
// it gives up on them, and says so. It waits for the return of a lease no longer than the
// lease can be served: other replicas free it.
func (s *Store) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.healed()
	buckets := s.engine.Load().Close(ctx)
	unhook := context.AfterFunc(ctx, s.stop)
	s.calls.Wait()
	unhook()
	s.stop()
	records := s.Catalog.Close(ctx)
	if buckets != nil { // both say the same of ctx
		return buckets
	}
	return records
}
