package engine

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/lane"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

const (
	// DefaultAttempt is how long one message to DynamoDB may take. It is long for
	// DynamoDB, and short for a caller that waits behind a message that is lost.
	DefaultAttempt = 100 * time.Millisecond
	// DefaultBudget is how long a decision may take, and how old a plan may be that is sent.
	DefaultBudget = time.Second
	// DefaultIdle is how long a process remembers a bucket that is not asked for.
	DefaultIdle = 10 * time.Minute
	// DefaultMaxLanes is the number of items that a process remembers, about 60 MB of memory.
	DefaultMaxLanes = 1 << 16
	// DefaultShardUnits is the number of write units a second that DynamoDB grants one item.
	DefaultShardUnits = 1000
	// DefaultQuiet is how long a shard must be used little before it is merged.
	DefaultQuiet = time.Minute

	// maxBudget keeps every write that is sent younger than the ttl of its item has margin.
	maxBudget = 10 * time.Minute
	// sweepsPerIdle is the number of parts that a sweep of all lanes is cut into.
	sweepsPerIdle = 16
	// This does not compile where a charge that waited for a lease has less than half of the
	// default time left for its write.
	_ = uint64(DefaultBudget - 2*lane.OwedWait)
)

// Config configures an engine. Items, Table and Namespace must be set.
type Config struct {
	StoreConfig // of which Buckets, Part, Generation, AuditRetention and PurgeWait are not the engine's

	// Items are those of the table. Those that are no *awsdb.Guard get one.
	Items awsdb.Items
	// Namespace returns the id of a namespace, which it registers if it is new. Its errors
	// wrap those of limiter.Store.
	Namespace func(ctx context.Context, name string) (id string, err error)
	// Before are the engines of this process that have ended, whose leases are freed at once; nil = none has.
	Before *lane.Predecessors
	// Loop starts goroutines and waits; nil = awsdb.Goroutines. A simulation sets another one.
	Loop awsdb.Loop
}

// withDefaults returns the configuration with its defaults filled in.
func (c Config) withDefaults() (Config, error) {
	if c.Items == nil || c.Table == "" || c.Namespace == nil {
		return c, fmt.Errorf("%w: the buckets of a table need its items, its name, and its namespaces", limiter.ErrInvalid)
	}
	if c.Budget > maxBudget {
		return c, fmt.Errorf("%w: the budget of a decision is %v; it must be at most %v", limiter.ErrInvalid, c.Budget, maxBudget)
	}
	for _, d := range []struct {
		value *time.Duration
		or    time.Duration
	}{{&c.Budget, DefaultBudget}, {&c.Attempt, max(DefaultAttempt, c.Budget/10)}, {&c.Idle, DefaultIdle}, {&c.Quiet, DefaultQuiet}} {
		if *d.value <= 0 {
			*d.value = d.or
		}
	}
	if c.MaxLanes <= 0 {
		c.MaxLanes = DefaultMaxLanes
	}
	if c.ShardUnits <= 0 {
		c.ShardUnits = DefaultShardUnits
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Loop == nil {
		c.Loop = awsdb.Goroutines{}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

// Engine decides calls. It is safe for concurrent use. Create it with [New].
type Engine struct {
	cfg    Config
	guard  *awsdb.Guard
	lanes  *lane.Lanes
	forest Forest
	free   sync.Pool // of *call that ended
	prefer int       // which shard of a bucket it asks first, at level schema.MaxShards

	mu      sync.RWMutex
	closed  bool
	calls   sync.WaitGroup
	sweeper context.CancelFunc
	swept   sync.WaitGroup
}

// New returns an engine that runs by itself. It sends no message. Its errors wrap
// limiter.ErrInvalid.
func New(cfg Config) (*Engine, error) {
	e, err := NewIdle(cfg)
	if err != nil {
		return nil, err
	}
	var sweeping context.Context
	sweeping, e.sweeper = context.WithCancel(context.Background())
	e.swept.Go(func() { e.sweepLoop(sweeping) })
	e.swept.Go(func() { e.tendLoop(sweeping) })
	return e, nil
}

// NewIdle returns an engine that forgets no idle lane and tends no shard by itself, for a
// simulation that calls [Engine.Tend].
func NewIdle(cfg Config) (*Engine, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	e := &Engine{cfg: cfg, sweeper: func() {}}
	var guarded bool
	if e.guard, guarded = cfg.Items.(*awsdb.Guard); !guarded {
		e.guard = awsdb.NewGuard(cfg.Items, awsdb.GuardConfig{Now: cfg.Now, Loop: cfg.Loop, Observe: cfg.Observe, Logger: cfg.Logger})
	}
	e.prefer = int(cfg.Loop.Draw(schema.MaxShards))
	e.lanes = lane.New(lane.Config{
		Items: e.guard, Table: cfg.Table, Before: cfg.Before, Loop: cfg.Loop, Now: cfg.Now, Clock: cfg.Clock, Attempt: cfg.Attempt, Budget: cfg.Budget,
		MaxLanes: cfg.MaxLanes, ShardUnits: cfg.ShardUnits, Quiet: cfg.Quiet, Leases: cfg.Leases, Scripts: cfg.Scripts, Crowded: cfg.Crowded, Parts: cfg.Parts, Logger: cfg.Logger, Silence: e.guard.Silent, Seen: e.saw,
	})
	return e, nil
}

// saw notes a state that a lane saw of its shard.
func (e *Engine) saw(site *lane.Site, index int, s lane.Sight) {
	e.forest.Saw(&ShardID{Namespace: site.Namespace, Bucket: site.Bucket}, index, e.prefer, Sight(s))
}

// begin counts a call that Close waits for, until e.calls.Done.
func (e *Engine) begin() error {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if e.closed { // rule: a closed engine takes no calls
		return limiter.ErrClosed
	}
	e.calls.Add(1)
	return nil
}

// Close returns the leases. It waits until ctx is done for calls in flight, for owed requests, and
// for usage that the items do not count. After that it gives up on them, and its error says so. A
// second Close waits too.
func (e *Engine) Close(ctx context.Context) error {
	e.sweeper()
	e.swept.Wait()
	e.Leave(ctx)
	done := make(chan struct{})
	go func() { // ends with the lanes' work, which Stop ends
		e.calls.Wait() // rule: calls in flight are waited for
		e.lanes.Settle()
		close(done)
	}()
	select {
	case <-done:
		e.lanes.Stop() //nolint:contextcheck // a lane works for as long as the lanes do
		if lost := e.lanes.Counters.LostUsage.Stop.Load(); lost > 0 {
			return fmt.Errorf("%w: the server of the store did not answer, and usage of %d millitokens is not counted", limiter.ErrUnavailable, lost)
		}
		return nil
	case <-ctx.Done():
		e.lanes.Stop() //nolint:contextcheck // a lane works for as long as the lanes do
		<-done
		return awsdb.ContextError(ctx)
	}
}

// Leave takes no further call, and returns the leases, until ctx ends. [Engine.Close] does so, and
// waits for the rest. A simulation waits by itself.
func (e *Engine) Leave(ctx context.Context) {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	e.lanes.Return(ctx)
}

// sweepLoop forgets idle lanes, until ctx ends.
func (e *Engine) sweepLoop(ctx context.Context) {
	ticker := time.NewTicker(max(e.cfg.Idle/sweepsPerIdle, time.Millisecond))
	defer ticker.Stop()
	for part := 0; ; part = (part + 1) % sweepsPerIdle {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		e.lanes.Sweep(part, sweepsPerIdle, e.cfg.Now().Add(-e.cfg.Idle))
	}
}

// State returns whether DynamoDB answers.
func (e *Engine) State() awsdb.State { return e.guard.State() }

// FailingSince returns when the first of the calls failed that ended without an answer
// since the last answer; zero while calls are answered.
func (e *Engine) FailingSince() time.Time { return e.guard.FailingSince() }
