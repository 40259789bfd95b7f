package dynamo

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/awsdb"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/catalog"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

const (
	// DefaultAttempt is how long one message to DynamoDB may take. It is long for
	// DynamoDB and short for whoever waits behind a message that is lost.
	DefaultAttempt = 100 * time.Millisecond
	// DefaultBudget is how long a decision may take and a plan may be sent.
	DefaultBudget = time.Second
	// DefaultIdle is how long this process remembers a bucket that nobody asks for.
	DefaultIdle = 10 * time.Minute
	// DefaultMaxLanes is how many buckets this process remembers, about 60 MB of memory.
	DefaultMaxLanes = 1 << 16

	// sweepsPerIdle is how many parts a look at all lanes is cut into.
	sweepsPerIdle = 16
)

// Config configures a store. Client and Table must be set.
type Config struct {
	Client Client
	Table  string

	// Attempt is how long one message may take; 0 = DefaultAttempt, or a tenth of Budget
	// where that is longer.
	Attempt time.Duration
	// Budget is how long a decision takes at most, whatever the caller's context
	// allows, and how old a plan may be that is sent; 0 = DefaultBudget, at most 10 minutes.
	Budget time.Duration
	// Idle is how long a bucket is remembered that nobody asks for; 0 = DefaultIdle.
	// The first request after that costs two writes.
	Idle time.Duration
	// MaxLanes is how many buckets are remembered; 0 = DefaultMaxLanes.
	MaxLanes int
	// ShardUnits is how many write units a second one item is good for: a bucket that
	// uses 80 % of them is split in two, up to 32 shards; 0 = DefaultShardUnits.
	ShardUnits int64
	// Quiet is how long two shards must use less than a quarter each before they are
	// one again; 0 = DefaultQuiet.
	Quiet time.Duration
	// Leases lets lanes take tokens in advance and serve them from memory, as the policy
	// of each op says; without, nothing is ever leased, whatever they say. Others' leases
	// are honoured either way. Replicas with and without may share a table.
	Leases bool
	// Now is the machine's clock, with both of its readings; nil = time.Now. Leases end by
	// either, so a clock whose wall reading is made from the monotonic one hides a sleep of
	// the machine. Splits, merges and repeated give-backs go by it, and the times in
	// records, corrected by Clock; decisions go by their callers' clocks.
	Now func() time.Time
	// Clock corrects the callers' clocks; the client has to tell it of replies, see
	// [ClientConfig]. While it cannot be trusted nothing is refilled: requests get
	// what is stored, and those that need more wait for the replies to a few reads,
	// then fail with limiter.ErrUnavailable. nil = buckets go by their callers' clocks
	// as they are.
	Clock *Clock
	// Observe is told when calls come to be refused because DynamoDB does not answer
	// them, and when that is over, one after the other. It must not call the store; nil =
	// changes are not told.
	Observe func(State)
	// Logger is told of tokens that were lost, and of a clock that cannot be trusted;
	// nil = none.
	Logger *slog.Logger
}

// maxBudget keeps every write that is sent younger than the ttl of its item has margin.
const maxBudget = 10 * time.Minute

// withDefaults returns the configuration with what it leaves out.
func (c Config) withDefaults() (Config, error) {
	if c.Client == nil || c.Table == "" {
		return c, fmt.Errorf("%w: a DynamoDB store needs a client and the name of a table", limiter.ErrInvalid)
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
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

// Store is a limiter.Store in a DynamoDB table. Create it with [New].
type Store struct {
	*catalog.Catalog // entities, limits, audit events, namespaces
	settlements      *catalog.Settlements

	cfg    Config
	loop   awsdb.Loop
	client Client
	lanes  lanes
	forest forest
	leases leases

	guard *awsdb.Guard // the client

	namespaceID func(ctx context.Context, name string) (string, error) // that of the catalog, or of a simulation

	replica string                 // the name that this process started with, see self
	drawn   atomic.Pointer[string] // another one since
	renamed atomic.Uint64          // how often
	slot    int                    // where it leaves the id of its first write on an item
	slots   int                    // how many it leaves ids in
	prefer  int                    // which shard of a bucket it asks first, at level maxShards
	writes  atomic.Uint64
	stats   counters
	owed    atomic.Int64 // give-backs that wait to be tried again
	halted  atomic.Bool  // refills stopped: the clock cannot be trusted

	leaseIDs atomic.Uint64
	closing  atomic.Bool // nothing is leased any more

	mu      sync.RWMutex
	closed  bool
	work    sync.WaitGroup  // calls, lanes that run, the sweeper
	stopped context.Context //nolint:containedctx // of the store's own work: done when Close gives up on it
	stop    context.CancelFunc
	sweeper context.CancelFunc
}

var _ limiter.Store = (*Store)(nil)

// counters are what Stats reports.
type counters struct {
	writes, refused, resent, reads, lost, halts, splits, merges atomic.Int64

	granted, renewed, returned, reaped, served atomic.Int64 // leases; served: ops
}

// wrote counts a write, unless it was not sent because of an outage.
func (c *counters) wrote(err error) {
	if !errors.Is(err, awsdb.ErrOutage) {
		c.writes.Add(1)
	}
}

// Stats counts what a store has done since it was made.
type Stats struct {
	Writes  int64 // conditional writes sent for buckets
	Refused int64 // of them, those whose condition did not hold; DynamoDB bills each as a write
	Resent  int64 // of them, those sent again, after a throttle or a lost reply
	Reads   int64 // of buckets
	Lost    int64 // takes for no admitted request that were not, or may not have been, given back
	Owed    int64 // give-backs that wait for DynamoDB now
	Halts   int64 // times that refills stopped, because the clock could not be trusted
	Lanes   int64 // buckets remembered now
	Outages int64 // times that DynamoDB was taken for unavailable, as it did not answer
	Splits  int64 // shards that this process split in two
	Merges  int64 // pairs of shards that it made one again
	Open    bool  // a call would be refused now, because of an outage

	Leases   int64 // buckets' items of which tokens are held on lease now, or may be
	Granted  int64 // leases that began
	Renewed  int64 // times that one was renewed: what was spent reported, more taken
	Returned int64 // leases that were given back, or spent and not renewed
	Reaped   int64 // leases of processes that are no more, freed by this one
	Served   int64 // ops decided from leases, without a call to DynamoDB
}

// New returns a store on a table, which must exist, and contacts nobody. Its errors
// wrap limiter.ErrInvalid.
func New(cfg Config) (*Store, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	s := newStore(cfg, awsdb.Goroutines{}, drawName(awsdb.Goroutines{}))
	s.Catalog = catalog.New(catalog.Config{
		Client: s.client, Table: cfg.Table, Logger: cfg.Logger, Loop: s.loop,
		Now: func() time.Time { return cfg.Clock.Correct(cfg.Now()) },
	})
	s.namespaceID = s.NamespaceID
	s.stopped, s.stop = context.WithCancel(context.Background())
	var sweeping context.Context
	sweeping, s.sweeper = context.WithCancel(s.stopped)
	s.work.Go(func() { s.sweepLoop(sweeping) })
	s.work.Go(func() { s.tendLoop(sweeping) })
	return s, nil
}

// newStore returns the store of a run of a process that has no catalog yet, and nothing
// that runs by itself.
func newStore(cfg Config, by awsdb.Loop, replica string) *Store {
	client := awsdb.NewGuard(cfg.Client, cfg.Now, by, cfg.Observe)
	s := &Store{cfg: cfg, loop: by, client: client, guard: client, replica: replica}
	h := fnv.New32a()
	_, _ = h.Write([]byte(replica)) // never fails
	s.slot, s.prefer = int(h.Sum32()%schema.SlotCount), int(h.Sum32()/schema.SlotCount%schema.MaxShards)
	s.slots = schema.SlotCount
	s.lanes.init(cfg.MaxLanes)
	s.settlements = catalog.NewSettlements(catalog.SettlementsConfig{
		Client: client, Table: cfg.Table, Loop: by, Now: cfg.Now, Attempt: cfg.Attempt,
		NamespaceID: func(ctx context.Context, name string) (string, error) { return s.namespaceID(ctx, name) },
	})
	return s
}

// nextID returns the id of a write to an item as it was last seen: no other write of any
// process has it.
func (s *Store) nextID(on *view) writeID {
	return writeID{slot: s.slotOn(on), id: s.self() + ":" + s.numbered(s.writes.Add(1))}
}

// wrote reports whether an id is of a write of this process.
func (s *Store) wrote(id string) bool { return replicaOf(id) == s.self() }

// replicaOf returns the run of a process that an id of a write is of.
func replicaOf(id string) string {
	replica, _, _ := strings.Cut(id, ":")
	return replica
}

// slotOn returns the slot of an item that this process leaves its ids in: where it left
// the last, or else where nobody has. Where no slot is free it is one by chance, so that
// of two processes that wipe out each other's ids one comes to take that of a process
// which is no more.
func (s *Store) slotOn(v *view) int {
	if v == nil {
		return s.slot
	}
	free := -1
	for i := range s.slots {
		slot := (s.slot + i) % s.slots
		switch id := v.slots[slot]; {
		case s.wrote(id):
			return slot
		case id == "" && free < 0:
			free = slot
		}
	}
	if free < 0 {
		return int(s.loop.Draw(int64(s.slots)))
	}
	return free
}

// era is another number after each sign that this process stood still unawares, or was
// copied. Leases from before may be served by others.
func (s *Store) era() uint64 { return s.cfg.Clock.Era() + s.renamed.Load() }

// Capabilities implements limiter.Store.
func (s *Store) Capabilities() limiter.BackendCapabilities {
	return limiter.BackendCapabilities{AuditLogging: true, BatchOperations: true}
}

// Stats returns what the store has done so far.
func (s *Store) Stats() Stats {
	outages, open := s.guard.Outages()
	return Stats{
		Outages: outages, Open: open, Splits: s.stats.splits.Load(), Merges: s.stats.merges.Load(),
		Writes: s.stats.writes.Load(), Refused: s.stats.refused.Load(), Resent: s.stats.resent.Load(),
		Reads: s.stats.reads.Load(), Lost: s.stats.lost.Load(), Owed: s.owed.Load(), Halts: s.stats.halts.Load(), Lanes: int64(s.lanes.count()),
		Leases: s.leases.size.Load(), Granted: s.stats.granted.Load(), Renewed: s.stats.renewed.Load(),
		Returned: s.stats.returned.Load(), Reaped: s.stats.reaped.Load(), Served: s.stats.served.Load(),
	}
}

// State returns whether DynamoDB answers.
func (s *Store) State() State { return s.guard.State() }

// FailingSince returns when DynamoDB began to fail: the time of the first failed call since
// the last answer, or of the first of the outage. It is zero while calls are answered.
func (s *Store) FailingSince() time.Time { return s.guard.FailingSince() }

// begin counts a piece of work that Close waits for, until s.work.Done.
func (s *Store) begin() error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return limiter.ErrClosed
	}
	s.work.Add(1)
	return nil
}

// Take implements limiter.Store: all buckets are taken from at once, each through
// its lane, and what was taken is given back when one of them denies. That is done
// by the lanes on their own: the call does not wait for it, and a caller who
// leaves does not stop it.
//
// Of what was taken in one bucket while another denies others can be denied until
// it is back; a process that dies meanwhile, or a give-back whose reply is lost,
// leaves it taken.
func (s *Store) Take(ctx context.Context, now time.Time, ops []limiter.Op) (bool, error) {
	if err := s.begin(); err != nil {
		return false, err
	}
	defer s.work.Done()
	if err := awsdb.ContextError(ctx); err != nil {
		return false, err
	}
	if len(ops) == 0 {
		return false, fmt.Errorf("%w: no ops", limiter.ErrInvalid)
	}
	if s.serveAll(now, ops) { //nolint:contextcheck // a lane works for as long as the store does
		return true, nil
	}
	c, err := newCall(s.cfg.Clock.Steady(now).UnixMilli(), ops)
	if err != nil {
		return false, err
	}
	corrected := s.cfg.Clock.Correct(now).UnixMilli()
	for _, b := range c.branches { // before anything is taken
		ns, err := s.namespaceID(ctx, b.site.bucket.Namespace)
		if err != nil {
			return false, err
		}
		b.site.ns, b.op.ns, b.now = ns, ns, corrected
	}
	defer c.leave()
	expires := s.cfg.Now().Add(s.cfg.Budget)
	for c.next(&s.forest, s.cfg.Now()) {
		for _, r := range c.sent {
			r.expires = expires
			s.queue(r)
		}
		if s.loop.Wait(ctx, c.done) != nil {
			return false, s.abandon(ctx, c)
		}
		c.harvest()
	}
	defer s.byCaller(now, ops)
	return s.decide(c, ops)
}

// byCaller turns the times of what ops report into those of the caller's clock.
func (s *Store) byCaller(now time.Time, ops []limiter.Op) {
	ahead := s.cfg.Clock.Correct(now).UnixMilli() - now.UnixMilli()
	for i := range ops {
		for j := range ops[i].Spends {
			if sp := &ops[i].Spends[j]; sp.Held {
				sp.Bucket.Refilled -= ahead
			}
		}
	}
}

// queue hands a request to its lane. The caller holds a piece of work.
func (s *Store) queue(r *request) {
	if l := s.lanes.enqueue(r.key, r); l != nil {
		s.serve(l)
	}
}

// decide decides by what the lanes said.
func (s *Store) decide(c *call, ops []limiter.Op) (bool, error) {
	admitted := true
	var failed error
	for i, b := range c.branches {
		admitted = admitted && b.met()
		for _, r := range b.parts {
			admitted = admitted && r.err == nil
			if r.err != nil && (failed == nil || errors.Is(r.err, limiter.ErrUncertain)) {
				failed = fmt.Errorf("bucket %d: %w", i, r.err)
			}
		}
	}
	if !admitted {
		for _, r := range c.all() {
			if !r.keep || failed == nil || errors.Is(failed, limiter.ErrInvalid) {
				s.giveBack(r)
			}
		}
	}
	if failed != nil {
		if c.booked() && !errors.Is(failed, limiter.ErrUncertain) && !errors.Is(failed, limiter.ErrInvalid) {
			failed = fmt.Errorf("%w: booked in part: %w", limiter.ErrUncertain, failed)
		}
		return false, failed
	}
	now := s.cfg.Now()
	for i, b := range c.branches {
		b.report(&ops[i], admitted, now)
	}
	return admitted, nil
}

// giveBack gives back what a request took, in its lane's next write.
func (s *Store) giveBack(r *request) {
	if r.err != nil {
		return
	}
	if u := r.undo(); u != nil {
		u.expires = s.cfg.Now().Add(s.cfg.Budget)
		s.queue(u)
	}
}

// abandon ends a call whose context is done. Tokens that were taken are given back, unless the
// caller is admitted. A write that waits is not sent. One that is under way may or may not be applied:
// the lane gives back the tokens that it takes.
func (s *Store) abandon(ctx context.Context, c *call) error {
	kind := limiter.ErrUnavailable
	for _, r := range c.all() {
		switch r.state.Swap(gone) {
		case waiting:
			if r.uncertain {
				kind = limiter.ErrUncertain
			}
		case sent:
			kind = limiter.ErrUncertain
		case finished:
			if !r.keep {
				s.giveBack(r)
			}
			if errors.Is(r.err, limiter.ErrUncertain) || r.err == nil && r.books() {
				kind = limiter.ErrUncertain
			}
		}
	}
	return fmt.Errorf("%w: %w", kind, ctx.Err())
}

// Close implements limiter.Store: it gives back what is held on lease, and waits for the
// calls in flight and for what is being given back, until ctx is done; then it gives up
// on them, and says so. It does not wait for leases that DynamoDB does not take back for
// longer than they can be served: others free them.
func (s *Store) Close(ctx context.Context) error {
	s.mu.Lock()
	first := !s.closed
	if s.closed = true; first {
		s.work.Add(1) // lanes are run
	}
	s.mu.Unlock()
	s.sweeper()
	if first {
		s.closing.Store(true)
		s.returnLeases(ctx)
		s.work.Done()
	}
	done := make(chan struct{})
	go func() { // ends with the work, which stop ends
		s.work.Wait()
		close(done)
	}()
	err := s.Catalog.Close(ctx)
	select {
	case <-done:
		s.stop()
		return err
	case <-ctx.Done():
		s.stop()
		<-done
		return awsdb.ContextError(ctx)
	}
}

// sweepLoop forgets idle buckets, until ctx ends.
func (s *Store) sweepLoop(ctx context.Context) {
	ticker := time.NewTicker(max(s.cfg.Idle/sweepsPerIdle, time.Millisecond))
	defer ticker.Stop()
	for part := 0; ; part = (part + 1) % sweepsPerIdle {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		const size = laneShards / sweepsPerIdle
		s.lanes.sweep(part*size, (part+1)*size, s.cfg.Now().Add(-s.cfg.Idle))
	}
}
