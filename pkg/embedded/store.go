package embedded

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ratelimit/ratelimit/internal/shortname"
	"github.com/ratelimit/ratelimit/pkg/embedded/datafile"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

const (
	// shardCount keeps a sweep of one shard short (some hundred buckets of a
	// million) and makes it unlikely that two hot buckets share a lock.
	shardCount = 4096

	// DefaultMaxBuckets is the most buckets held at once, about 1 GiB of memory with short names.
	DefaultMaxBuckets = 5_000_000
	// MarkBytes is the memory that a mark of a settlement takes at most.
	MarkBytes = 1 << 30 / DefaultMaxMarks
	// BucketBytes is the memory that a bucket takes at most, with the longest names that are
	// kept and two limits. One with short names and one limit takes a fifth of it.
	BucketBytes = 1344
	// DefaultMaxMarks is the most marks of settlements held at once, about 1 GiB of memory.
	DefaultMaxMarks = 5_000_000
	// DefaultSweepInterval is how long it takes to look at every bucket once.
	DefaultSweepInterval = time.Minute
)

// Config configures a store. The zero Config is useful.
type Config struct {
	// MaxBuckets is the most buckets held at once; 0 = DefaultMaxBuckets. Buckets
	// that are full again do not count for longer than a sweep.
	MaxBuckets int64
	// MaxOverflow is the most overflow buckets, which keys share that have no bucket when
	// there are MaxBuckets; 0 = DefaultMaxOverflow. Beyond it such keys are denied.
	MaxOverflow int64
	// MaxMarks is the most marks of settlements held at once; 0 = DefaultMaxMarks.
	// Marks that have expired do not count for longer than a sweep.
	MaxMarks int64
	// SweepInterval is how long it takes to look at every bucket and mark once and
	// drop those that are full or have expired; 0 = DefaultSweepInterval.
	SweepInterval time.Duration
	// Now is the clock by which full buckets are found; nil = time.Now. It should be
	// the clock that callers read.
	Now func() time.Time
	// NewFile has Open make an empty file also in a directory that had one, which is
	// missing: all buckets are full then.
	NewFile bool
	// AuditRetention is how long audit events are kept; 0 = limiter.AuditRetention.
	AuditRetention time.Duration
	// Logger is told what a crash has lost, and that the file cannot be written; nil = none.
	Logger *slog.Logger
}

// Store is a limiter.Store, in memory or with a file. Create it with [New] or [Open]. Each of its
// parts implements a part of the contract.
type Store struct {
	*table       // buckets
	*taker       // decisions
	*catalog     // entities and limits, read
	*editor      // and changed
	*directory   // and listed
	*namespaces  // in use
	*purger      // of namespaces
	*auditLog    // of changes
	*usageLog    // by hour, day and month
	*balances    // listed and adjusted
	*settlements // marks and secrets
	*sweeper     // drops what is over
	*restorer    // of backups

	cfg      *Config // shared by all parts
	disk     *disk   // nil without a file
	recovery Recovery
}

var _ limiter.Store = (*Store)(nil)

// shard is a part of the buckets, found by hash. A nil map says that the store is closed.
type shard struct {
	mu      sync.Mutex
	buckets map[uint64]*bucket
	_       [48]byte // a cache line of its own
}

// New returns an empty store and starts its sweeper, which Close stops.
func New(cfg Config) *Store {
	s := assemble(cfg.withDefaults(), nil)
	s.start()
	return s
}

func (cfg Config) withDefaults() Config {
	if cfg.MaxBuckets <= 0 {
		cfg.MaxBuckets = DefaultMaxBuckets
	}
	if cfg.MaxOverflow <= 0 {
		cfg.MaxOverflow = DefaultMaxOverflow
	}
	if cfg.MaxMarks <= 0 {
		cfg.MaxMarks = DefaultMaxMarks
	}
	if cfg.SweepInterval <= 0 {
		cfg.SweepInterval = DefaultSweepInterval
	}
	if cfg.AuditRetention <= 0 {
		cfg.AuditRetention = limiter.AuditRetention
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return cfg
}

// assemble returns an empty store that does nothing yet by itself, with a file or nil.
func assemble(cfg Config, file *datafile.File) *Store {
	s := &Store{cfg: &cfg}
	s.table = newTable(s.cfg, file != nil)
	if file != nil {
		s.disk = newDisk(s.table, file)
	}
	s.catalog = newCatalog(s.cfg, s.disk)
	s.settlements = newSettlements(s.cfg, s.disk)
	s.taker = &taker{s.table, s.disk}
	s.directory = &directory{s.catalog}
	s.namespaces = &namespaces{s.catalog, s.table, s.disk}
	s.editor = &editor{s.catalog, s.namespaces}
	s.auditLog = &auditLog{s.catalog, s.disk}
	s.usageLog = &usageLog{s.table, s.catalog, s.disk}
	s.balances = &balances{s.table, s.catalog, s.settlements, s.disk}
	s.sweeper = newSweeper(s.table, s.settlements, s.disk)
	s.purger = newPurger(s.editor, s.sweeper)
	s.restorer = &restorer{table: s.table, catalog: s.catalog, settlements: s.settlements, disk: s.disk}
	return s
}

// Capabilities implements limiter.Store.
func (s *Store) Capabilities() limiter.BackendCapabilities {
	durable := s.disk != nil
	return limiter.BackendCapabilities{Local: true, BatchOperations: true, AuditLogging: durable, UsageSnapshots: durable}
}

// Buckets returns the number of buckets held now, without overflow buckets.
func (t *table) Buckets() int64 { return t.buckets.Load() }

// Close implements limiter.Store: it stops the sweeper, has the file hold the exact
// balances, and forgets everything. One that fails for its context can be called again.
func (s *Store) Close(ctx context.Context) error {
	s.stop()
	s.table.close(s.disk)
	s.catalog.close()
	s.settlements.close()
	select {
	case <-s.done:
	case <-ctx.Done():
		return fmt.Errorf("%w: closing: %w", limiter.ErrUnavailable, ctx.Err())
	}
	if s.disk == nil {
		return nil
	}
	var err error
	s.disk.finished.Do(func() { err = s.disk.finish() })
	return err
}

// table is the buckets in memory. It knows nothing of the file, but that there is one.
type table struct {
	cfg      *Config
	durable  bool // each bucket has a block
	seed     maphash.Seed
	buckets  atomic.Int64          // without overflow buckets
	shards   [shardCount + 1]shard // the last has the overflow buckets
	overflow overflow
}

// newTable returns an empty table.
func newTable(cfg *Config, durable bool) *table {
	t := &table{cfg: cfg, durable: durable, seed: maphash.MakeSeed()}
	for i := range t.shards {
		t.shards[i].buckets = make(map[uint64]*bucket)
	}
	t.overflow.slots = OverflowSlots
	return t
}

// close forgets everything. The disk has it, unless it is nil.
func (t *table) close(d *disk) {
	for i := range t.shards {
		sh := &t.shards[i]
		sh.mu.Lock()
		if i == overflowShard {
			t.overflow.held.Store(0)
		} else {
			t.buckets.Add(-int64(len(sh.buckets)))
		}
		if d != nil && sh.buckets != nil { // another Close has kept them, and may be reading
			d.keep(sh.buckets)
		}
		sh.buckets = nil
		sh.mu.Unlock()
	}
}

// taker decides: it takes from buckets, and waits for the file where it has to.
type taker struct {
	*table

	disk *disk // nil without a file
}

// hash finds a bucket. The seed is random for each store, so that nobody can
// choose names that collide; bucket.is settles the rest.
func (t *table) hash(k *limiter.BucketKey) uint64 {
	return t.hashKept(k.Namespace, shortname.Of(k.Entity), shortname.Of(k.Resource), k.Variant)
}

// hashOf is hash of the names that a bucket keeps.
func (t *table) hashOf(b *bucket) (uint64, *shard) {
	if b.shared {
		return t.hashKept(b.namespace.Value(), b.entity, "", b.variant), &t.shards[overflowShard]
	}
	hash := t.hashKept(b.namespace.Value(), b.entity, b.resource.Value(), b.variant)
	return hash, &t.shards[hash%shardCount]
}

// hashKept is hash of names as buckets keep them.
func (t *table) hashKept(namespace, entity, resource string, variant uint64) uint64 {
	const odd = 0x9e3779b97f4a7c15 // 2^64/φ: spreads the parts, so that they do not cancel out
	h := maphash.String(t.seed, entity)
	h = h*odd + maphash.String(t.seed, resource)
	if namespace != limiter.DefaultNamespace { // most installations have no other
		h = h*odd + maphash.String(t.seed, namespace)
	}
	h = (h + variant) * odd
	return h ^ h>>32
}

// Take implements limiter.Store.
func (k *taker) Take(ctx context.Context, now time.Time, ops []limiter.Op) (bool, error) {
	if ctx.Err() != nil {
		return false, contextErr(ctx)
	}
	if k.disk != nil {
		return k.takeDurably(ctx, now.UnixMilli(), ops)
	}
	if len(ops) == 1 {
		if admitted, done, err := k.takeOne(now.UnixMilli(), &ops[0]); done || err != nil {
			return admitted, err
		}
	}
	return k.takeAll(now.UnixMilli(), ops)
}

// takeOne is takeAll for the common case of one bucket, without its bookkeeping. It does
// nothing when the key has no bucket and there is no room for one.
func (k *taker) takeOne(now int64, op *limiter.Op) (admitted, done bool, err error) {
	hash := k.hash(&op.Bucket)
	sh := &k.shards[hash%shardCount]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	b, created, err := k.open(sh, hash, now, op)
	if b == nil {
		return false, false, err
	}
	admitted = b.prepare(op, now)
	b.finish(op, admitted)
	if created && b.full(now) {
		k.drop(sh, hash, b)
	}
	return admitted, true, nil
}

// opened is a bucket of a decision over several buckets.
type opened struct {
	shard   *shard
	hash    uint64
	bucket  *bucket
	created bool
	none    bool // the store has no such bucket: it only denies
	later   bool // what the op books is booked after the decision, in the bucket of another
}

// takeAll decides over several buckets while it holds the locks of all of them.
func (k *taker) takeAll(now int64, ops []limiter.Op) (bool, error) {
	admitted, later, err := k.takeTogether(now, ops)
	for _, i := range later {
		_, _, failed := k.takeTogether(now, ops[i:i+1])
		err = errors.Join(err, failed)
	}
	return admitted, err
}

// takeTogether is takeAll, without the ops whose indices it returns.
func (k *taker) takeTogether(now int64, ops []limiter.Op) (admitted bool, later []int, err error) {
	var fixed [16]opened
	held := fixed[:0]
	for i := range ops {
		held = append(held, opened{hash: k.hash(&ops[i].Bucket)})
	}
	var few [17]uint16
	indices, err := k.openAll(few[:0], held, ops, now)
	defer k.unlock(indices)
	if err != nil {
		k.dropFull(held, now) // nothing was applied: buckets that were created are full
		return false, nil, err
	}
	admitted = true
	for i := range ops {
		if !held[i].bucket.prepare(&ops[i], now) {
			admitted = false
		}
	}
	for i := range ops {
		if !held[i].none {
			held[i].bucket.finish(&ops[i], admitted)
		}
	}
	k.dropFull(held, now)
	return admitted, booksLater(held), nil
}

// booksLater returns the indices of the ops that are for later.
func booksLater(held []opened) (all []int) {
	for i := range held {
		if held[i].later {
			all = append(all, i)
		}
	}
	return all
}

// openAll locks the shards of the buckets of ops and opens the buckets, also after an
// error. It appends the indices of the shards that it has locked.
func (t *table) openAll(indices []uint16, held []opened, ops []limiter.Op, now int64) ([]uint16, error) {
	indices = shardsOf(indices, held)
	t.lock(indices)
	missing := false
	for i := range ops {
		h := &held[i]
		var err error
		h.shard = &t.shards[h.hash%shardCount]
		if h.bucket, h.created, err = t.open(h.shard, h.hash, now, &ops[i]); err != nil {
			return indices, err
		}
		missing = missing || h.bucket == nil
	}
	if !missing {
		return indices, nil
	}
	t.lock([]uint16{overflowShard})
	indices = append(indices, overflowShard)
	for i := range ops {
		if held[i].bucket != nil {
			continue
		}
		h, err := t.openShared(now, &ops[i], held[:i])
		if held[i] = h; err != nil {
			return indices, err
		}
	}
	return indices, nil
}

// dropFull removes the buckets that this decision created and left full.
func (t *table) dropFull(held []opened, now int64) {
	for _, h := range held {
		if h.created && h.bucket.full(now) {
			t.drop(h.shard, h.hash, h.bucket)
		}
	}
}

// open returns the bucket of op, under op's limits if they are the newer ones,
// and creates it when there is none; nil when there is no room for it. The shard must be
// locked.
func (t *table) open(sh *shard, hash uint64, now int64, op *limiter.Op) (b *bucket, created bool, err error) {
	if sh.buckets == nil {
		return nil, false, limiter.ErrClosed
	}
	first := sh.buckets[hash]
	for b = first; b != nil; b = b.next {
		if b.is(&op.Bucket) {
			if t.durable && b.block == nil {
				b.block = storedBlock(b.limits, now)
			}
			if b.limits != op.Limits || b.generation < op.Generation {
				b.adopt(op.Limits, op.Generation, now)
			}
			return b, false, nil
		}
	}
	if n := t.buckets.Add(1); n > t.cfg.MaxBuckets {
		t.buckets.Add(-1)
		return nil, false, nil
	}
	b = t.newBucket(op, now)
	if t.overflow.held.Load() > 0 {
		t.inherit(b, op, now)
	}
	b.next = first
	sh.buckets[hash] = b
	return b, true, nil
}

// newBucket returns the full bucket of an op.
func (t *table) newBucket(op *limiter.Op, now int64) *bucket {
	if t.durable {
		return newDurableBucket(op, now)
	}
	return newBucket(op, now)
}

// drop removes a bucket. The shard must be locked.
func (t *table) drop(sh *shard, hash uint64, b *bucket) {
	first := sh.buckets[hash]
	switch {
	case first == b && b.next == nil:
		delete(sh.buckets, hash)
	case first == b:
		sh.buckets[hash] = b.next
	default:
		for first.next != b {
			first = first.next
		}
		first.next = b.next
	}
	t.count(b, -1)
}

// count counts n more buckets of a kind.
func (t *table) count(b *bucket, n int64) {
	if b.shared {
		t.overflow.held.Add(n)
	} else {
		t.buckets.Add(n)
	}
}

func contextErr(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return unavailable(err)
	}
	return nil
}
