package valkey

import (
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"sync"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/catalog"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/engine"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/valkey/internal/items"
)

// DefaultName is the name of a table.
const DefaultName = "ratelimit"

// Parts is how many parts a table has in a cluster. Each is in a slot of its own.
const Parts = schema.IndexPartitions

const (
	// noSplits is more write units a second than an item can use: a server grants an item as many writes
	// as all others together.
	noSplits = 1 << 50
	// generations is how many generations a history has room for: those of the next one are above.
	generations = 1 << 40
	// sweepEvery is how often items that expired are looked for, and sweepItems how many are deleted by one
	// message.
	sweepEvery = time.Second
	sweepItems = 10        // of which each may be an hour of usage, with 16 limits: no call waits for more than some 3 ms
	sweepGrace = time.Hour // DynamoDB keeps items for longer than they last, too
)

// The store's view of its server.
type (
	// Clock is this machine's clock, corrected by the time of the server. Create it with [NewClock].
	Clock = awsdb.Clock
	// State says whether the server answers, and since when.
	State = awsdb.State
	// Stats counts the work of a store since it was made. See its fields.
	Stats = engine.Stats
	// Server is a server as it shows itself.
	Server = items.Server
)

// ErrLost says that the server came back without the table.
var ErrLost = items.ErrLost

// NewClock returns a clock that reads time with now, nil = time.Now.
func NewClock(now func() time.Time) *Clock { return awsdb.NewClock(now, 0) }

// Config configures a store.
type Config struct {
	Connection Connection
	Name       string // of the table: 1 to 64 letters, digits, '_', '-' and '.'; "" = DefaultName
	Create     bool   // makes the table at the start, where there is none
	// Recreate makes a new table where the server has lost the one that was there. Stored limits,
	// entities and audit are gone then. Without it the store is unavailable until there is a table again.
	Recreate bool
	// NoUsage leaves usage out, which costs about as much as the takes themselves.
	NoUsage bool
	// Replica lets exact writes wait until a replica of the server has them, for 50 ms at most. These are changes
	// of records, leases and limits, settlements and adjustments. Takes do not wait.
	Replica bool

	Attempt        time.Duration // how long one message may take; 0 = 100 ms, or a tenth of Budget where that is longer
	Budget         time.Duration // the longest time of a decision; 0 = 1 s; at most 10 minutes
	Leases         bool          // lets the store lease shares of buckets, as the policy of each op says
	AuditRetention time.Duration // how long audit events are kept; 0 = limiter.AuditRetention
	PurgeWait      time.Duration // how long a purge waits before it deletes; 0 = 12 s, below 0 = not at all

	Now     func() time.Time // the machine's clock, with both of its readings; nil = time.Now
	Clock   *Clock           // corrects the callers' clocks by that of the server; nil = they are taken as they are
	Observe func(State)      // called when an outage begins or ends; it must not call the store. nil = not called
	Logger  *slog.Logger     // nil = none
}

var tableName = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)

// IsName reports whether a table may have a name: 1 to 64 letters, digits, '_', '-' and '.'.
func IsName(name string) bool { return tableName.MatchString(name) }

// check fills in defaults.
func (c *Config) check() error {
	if c.Name == "" {
		c.Name = DefaultName
	}
	if !IsName(c.Name) {
		return fmt.Errorf("%w: the name of a table has 1 to 64 letters, digits, '_', '-' and '.', not %.100q", limiter.ErrInvalid, c.Name)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c.Connection.check()
}

// now returns the time, as the server has it.
func (c *Config) now() time.Time { return c.Clock.Correct(c.Now()) }

// items returns the configuration of the table.
func (c *Config) items() items.Config {
	return items.Config{Name: c.Name, Connect: (&way{Connection: c.Connection}).connect, Clock: c.Clock, Now: c.Now, Recreate: c.Recreate, NoUsage: c.NoUsage, Replica: c.Replica}
}

// Store is a limiter.Store on a server. It is safe for concurrent use. Create it with [Open].
type Store struct {
	*engine.Store

	db     *items.DB
	cfg    Config
	watch  *catalog.BudgetWatch
	stop   context.CancelFunc
	work   sync.WaitGroup
	closed sync.Once
}

// Open connects to the server, checks it, and returns the store on its table. Errors wrap
// limiter.ErrUnavailable where another try may help, and limiter.ErrInvalid where a change of server or
// configuration does.
func Open(ctx context.Context, cfg Config) (*Store, error) { //nolint:contextcheck // a store outlives its start
	if err := cfg.check(); err != nil {
		return nil, err
	}
	s := &Store{cfg: cfg}
	ready := make(chan struct{})
	of := cfg.items()
	of.Changed = func(number uint64, session *items.Session, lost func(schema.Key) bool) { //nolint:contextcheck // a store outlives the call that finds a history
		<-ready
		s.Renew(session, number*generations, lost)
	}
	of.Gained = func(hour schema.Key) { s.watch.Changed(hour) } // no write is made before there is a store
	var err error
	if s.db, err = items.Open(ctx, of, cfg.Create); err != nil {
		return nil, err
	}
	defer close(ready)
	number, session := s.db.History()
	in := cfg.store()
	in.Buckets, in.Generation = session, number*generations
	in.Part, in.Parts = s.db.Part()
	s.watch, err = catalog.NewBudgetWatch(catalog.BudgetWatchConfig{Items: s.db.Session(), Table: in.Table, Now: s.now, Logger: cfg.Logger})
	if err == nil {
		s.Store, err = engine.NewStore(s.db.Session(), in) //nolint:contextcheck // a store outlives its start
	}
	if err != nil {
		s.db.Close()
		return nil, err
	}
	working, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.work.Go(func() { s.sweep(working) })
	for place := range s.db.Places() { // one that hangs holds up no other
		s.work.Go(func() { s.follow(working, place) })
	}
	return s, nil
}

// followEvery is how often a process asks for the history, also without calls. It leaves time to heal within the
// time in which no bucket of a new history is taken from.
const followEvery = 50 * time.Millisecond

// follow notices another history of a place, until ctx ends.
func (s *Store) follow(ctx context.Context, place int) {
	ticker := time.NewTicker(followEvery)
	defer ticker.Stop()
	all := s.db.Session()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		asked, cancel := context.WithTimeout(ctx, sweepEvery)
		_ = all.Follow(asked, place) // the next tick tries again, and so does each call
		cancel()
	}
}

// store returns the configuration of the engine and the catalog.
func (c *Config) store() engine.StoreConfig {
	return engine.StoreConfig{
		Table: c.Name, Attempt: c.Attempt, Budget: c.Budget, ShardUnits: noSplits, Leases: c.Leases, Scripts: true, Crowded: true,
		AuditRetention: c.AuditRetention, PurgeWait: c.PurgeWait, Now: c.Now, Clock: c.Clock, Observe: c.Observe, Logger: c.Logger,
	}
}

// sweep deletes items that expired, until ctx ends.
func (s *Store) sweep(ctx context.Context) {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		for more := true; more && ctx.Err() == nil; {
			swept, cancel := context.WithTimeout(ctx, sweepEvery)
			var err error
			more, err = s.db.Sweep(swept, s.now().Add(-sweepGrace), sweepItems)
			cancel()
			more = more && err == nil // the next tick tries again
		}
	}
}

// now returns the time, as the server has it.
func (s *Store) now() time.Time { return s.cfg.now() }

// WatchBudgets compares usage with budgets until ctx is done, with a pause between comparisons; 0 = 5 s.
// It calls report for each threshold that usage has reached: once over all processes of the table, also
// where several of them watch. budgets returns those of the configuration in force. Stored limits have
// budgets too, see [limiter.BudgetSet.Of]. A threshold is not reported if the process crashes after it was
// noted in the table, and before the call. WatchBudgets is called once, and ends before Close, which compares
// once more.
func (s *Store) WatchBudgets(ctx context.Context, pause time.Duration, budgets func() *limiter.BudgetSet, report func(limiter.BudgetEvent)) {
	s.watch.Run(ctx, pause, budgets, report)
}

// Stats returns the counts so far.
func (s *Store) Stats() Stats {
	stats := s.Store.Stats()
	stats.Unreplicated = s.db.Unreplicated()
	return stats
}

// Servers reads the states of the servers that have the table: of one, or of some of a cluster.
func (s *Store) Servers(ctx context.Context) ([]*Server, error) { return s.db.Servers(ctx) }

// Close implements limiter.Store. It returns the leases, and waits for the calls in flight and for
// writes that this process owes, until ctx is done.
func (s *Store) Close(ctx context.Context) error {
	err := s.Store.Close(ctx)
	s.closed.Do(func() {
		s.watch.Finish(ctx)
		s.stop()
		s.work.Wait()
		s.db.Close()
	})
	return err
}

// Check connects to the servers that are to have a table, and reports why one cannot. table says why the table cannot be
// used, nil = it can be. servers are those that gave an answer.
func Check(ctx context.Context, cfg Config) (servers []*Server, table error, err error) {
	if err := cfg.check(); err != nil {
		return nil, nil, err
	}
	if servers, table, err = items.Look(ctx, cfg.items()); table == nil && err == nil {
		table = full(servers)
	}
	return servers, table, err
}

// full reports a server without memory for writes.
func full(servers []*Server) error {
	for _, s := range servers {
		if s.MaxMemory > 0 && s.Memory >= s.MaxMemory {
			at := ""
			if s.Address != "" {
				at = " (the primary at " + s.Address + ")"
			}
			return fmt.Errorf("%w: the memory of the server is full, %d bytes of maxmemory %d: it refuses writes; raise maxmemory%s", limiter.ErrUnavailable, s.Memory, s.MaxMemory, at)
		}
	}
	return nil
}

// Create makes a table, unless it is there, and reports whether it did.
func Create(ctx context.Context, cfg Config) (made bool, err error) {
	if err := cfg.check(); err != nil {
		return false, err
	}
	return items.Create(ctx, cfg.items())
}
