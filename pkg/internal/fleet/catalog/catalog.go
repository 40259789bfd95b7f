package catalog

import (
	"context"
	"log/slog"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// maxFreeReads is how often records are read beside changes of this process.
const maxFreeReads = 3

// DefaultPurgeWait is how long a process waits, from when it first saw that a purge has begun,
// until it deletes. A replica sees within 5 s that the namespace denies. Leases that it has then
// end within 5.6 s more, for their holder and for all others.
const DefaultPurgeWait = 12 * time.Second

// Config configures a catalog. Items and Table must be set.
type Config struct {
	Items  awsdb.Items
	Table  string
	Logger *slog.Logger // nil = none

	Generation     uint64        // that generations count from, until Forget
	AuditRetention time.Duration // how long audit events are kept; 0 = limiter.AuditRetention
	PurgeWait      time.Duration // how long a purge waits; 0 = DefaultPurgeWait, below 0 = not at all

	Now   func() time.Time // the wall clock; nil = time.Now
	Loop  awsdb.Loop       // by which it waits; nil = awsdb.Goroutines
	Ticks <-chan time.Time // when to read the changes of others; nil = every pollInterval
}

// Catalog is limiter.Catalog in a table. Besides, it has the ids of namespaces, and the
// queries of administration. It is safe for concurrent use.
//
// # Consistency
//
// Every change of a namespace is one transaction that raises the namespace's counter of
// changes. Its condition is that the counter has the value that the change was made from.
// Every record carries the value that wrote it. So changes have one order. Read needs
// neither a transaction nor a read of the counter, which would make it the hottest item of
// the table. Read has a value from before, and reads the records with strong consistency.
// Where none of them is newer they all are as they were at that value. The value of a newer
// one is the next to try. A deleted record leaves a tombstone with its generation, for
// [schema.ChangeTTL].
//
// A second counter of the namespace is of the configurations of replicas. The generation is the
// sum of both. An item has the second counter, and the first once more: replicas read it
// again and again, one item of each namespace that they use.
//
// Reads are strongly consistent because a replica keeps the records that it reads
// after a change for a minute: an old record would be kept, too.
type Catalog struct {
	namespaces

	auditRetention time.Duration
	purgeWait      time.Duration
}

// New returns a catalog and starts its watcher, which Close stops. It makes no call.
func New(cfg Config) *Catalog {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Loop == nil {
		cfg.Loop = awsdb.Goroutines{}
	}
	if cfg.PurgeWait == 0 {
		cfg.PurgeWait = DefaultPurgeWait
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	ctx, stop := context.WithCancel(context.Background())
	c := &Catalog{auditRetention: cfg.AuditRetention, purgeWait: cfg.PurgeWait, namespaces: namespaces{
		table: table{items: cfg.Items, name: cfg.Table, loop: cfg.Loop},
		now:   cfg.Now, log: cfg.Logger, opening: make(map[string]*opening), stop: stop, base: cfg.Generation,
	}}
	c.work.Go(func() { c.watch(ctx, cfg.Ticks) })
	return c
}

// Read implements limiter.Catalog: one batch, unless a record was changed so
// lately that this process does not know of it; then two.
func (c *Catalog) Read(ctx context.Context, namespace string, refs []limiter.Ref, records []limiter.Record) (uint64, error) {
	if err := c.usable(ctx); err != nil {
		return 0, err
	}
	sp, err := c.use(ctx, namespace)
	if err != nil {
		return 0, err
	}
	generation, stored, err := c.readAt(ctx, sp, refs)
	if err != nil {
		return 0, err
	}
	for i := range refs {
		records[i] = stored[i].Record
	}
	return generation, nil
}

// readAt reads the records of refs as they were together at one time, and returns
// the generation of that time. Changes that come faster than it reads must not keep
// it from an answer: after some tries it holds back those of this process.
func (c *Catalog) readAt(ctx context.Context, sp *space, refs []limiter.Ref) (uint64, []schema.StoredRecord, error) {
	for try := 1; ; try++ {
		if try == maxFreeReads {
			if err := sp.begin(ctx); err != nil {
				return 0, nil, err
			}
			defer sp.end()
		}
		known := sp.newest() // before the records
		stored, err := c.table.readRecords(ctx, sp.id, refs)
		if err != nil {
			return 0, nil, err
		}
		newest := uint64(0)
		for i := range stored {
			newest = max(newest, stored[i].Generation)
		}
		if newest <= known.Changes {
			return sp.generation(known), stored, nil
		}
		sp.saw(schema.Counters{Changes: newest})
	}
}
