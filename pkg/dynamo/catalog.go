package dynamo

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/awsdb"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

const (
	// maxFreeReads is how often records are read beside changes of this process.
	maxFreeReads = 3
)

// catalogConfig configures a catalog.
type catalogConfig struct {
	Client Client
	Table  string
	Logger *slog.Logger     // nil = none
	Now    func() time.Time // the wall clock; nil = time.Now
	Ticks  <-chan time.Time // when to look for changes of others; nil = every pollInterval
}

// catalog is limiter.Catalog in a table. Besides, it has the namespaces, and what
// those who administer entities and limits ask.
//
// # Consistency
//
// Every change of a namespace is one transaction that raises the namespace's
// counter, on the condition that it has the value that the change was made from,
// and every record carries the value that wrote it. So changes have one order,
// and Read needs neither a transaction nor a look at the counter, which would make
// it the hottest item of the table: it knows a value from before, reads the
// records with strong consistency, and where none of them is newer they all are
// as they were at that value. A record that is newer says by that what value to
// try next. A deleted record leaves one behind that tells when, for changeTTL.
//
// Reads are strongly consistent because what a replica reads after it was told of
// a change is believed for a minute: an old record would be, too.
type catalog struct {
	client Client
	table  string
	now    func() time.Time
	log    *slog.Logger

	spaces sync.Map      // of *space by name
	all    atomic.Uint64 // newest value of the table's counter that was seen

	mu         sync.Mutex
	closed     bool
	opening    map[string]*opening
	lookFailed error // what the last first look at a namespace ended in
	subscriber func(limiter.Change)

	work sync.WaitGroup // the watcher, and first looks at namespaces
	stop context.CancelFunc
}

// newCatalog returns a catalog and starts its watcher, which close stops.
func newCatalog(cfg catalogConfig) *catalog {
	c := &catalog{client: cfg.Client, table: cfg.Table, now: cfg.Now, log: cfg.Logger, opening: make(map[string]*opening)}
	if c.now == nil {
		c.now = time.Now
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	ctx, stop := context.WithCancel(context.Background())
	c.stop = stop
	c.work.Go(func() { c.watch(ctx, cfg.Ticks) })
	return c
}

// close stops the watcher, and waits for it until the context is done. Calls in
// flight finish; later ones return limiter.ErrClosed. It may be called again.
func (c *catalog) close(ctx context.Context) error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.stop()
	done := make(chan struct{})
	go func() { // ends when the watcher has, which was told to
		c.work.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return awsdb.ContextError(ctx)
	}
}

// usable reports why a call cannot be made: closed, or the context is done.
func (c *catalog) usable(ctx context.Context) error {
	c.mu.Lock()
	closed := c.closed
	c.mu.Unlock()
	if closed {
		return limiter.ErrClosed
	}
	return awsdb.ContextError(ctx)
}

// sawAll notes a value of the table's counter.
func (c *catalog) sawAll(generation uint64) {
	for {
		old := c.all.Load()
		if old >= generation || c.all.CompareAndSwap(old, generation) {
			return
		}
	}
}

// Read implements limiter.Catalog: one batch, unless a record was changed so
// lately that this process does not know of it; then two.
func (c *catalog) Read(ctx context.Context, namespace string, refs []limiter.Ref, records []limiter.Record) (uint64, error) {
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
func (c *catalog) readAt(ctx context.Context, sp *space, refs []limiter.Ref) (uint64, []schema.StoredRecord, error) {
	for try := 1; ; try++ {
		if try == maxFreeReads {
			if err := sp.begin(ctx); err != nil {
				return 0, nil, err
			}
			defer sp.end()
		}
		all, known := c.all.Load(), sp.newest() // before the records
		stored, err := c.readRecords(ctx, sp.id, refs)
		if err != nil {
			return 0, nil, err
		}
		newest := uint64(0)
		for i := range stored {
			newest = max(newest, stored[i].Generation)
		}
		if newest <= known {
			return known + all, stored, nil
		}
		sp.saw(newest)
	}
}

// readRecords reads the records of refs, each as it is when it is read. Refs of
// the same record are read once.
func (c *catalog) readRecords(ctx context.Context, ns string, refs []limiter.Ref) ([]schema.StoredRecord, error) {
	stored := make([]schema.StoredRecord, len(refs))
	keys := make([]schema.Key, 0, len(refs))
	first := make(map[schema.Key]int, len(refs)) // index of the first ref with the key
	same := make([]int, len(refs))
	for i, ref := range refs {
		k := schema.KeyOfRef(ns, ref)
		if _, found := first[k]; !found {
			first[k] = i
			keys = append(keys, k)
		}
		same[i] = first[k]
	}
	found, err := readItems(ctx, c.client, c.table, keys)
	if err != nil {
		return nil, err
	}
	for i, ref := range refs {
		if same[i] != i {
			stored[i] = stored[same[i]]
			continue
		}
		if stored[i], err = schema.ParseRecord(c.table, ns, ref, found[schema.KeyOfRef(ns, ref)]); err != nil {
			return nil, err
		}
	}
	return stored, nil
}

// counter is the value of a namespace's counter, or why it cannot be read.
type counter struct {
	value uint64
	err   error
}

// readCounters reads the table's counter and those of namespaces.
func (c *catalog) readCounters(ctx context.Context, spaces []*space) (all uint64, counters []counter, err error) {
	keys := make([]schema.Key, 0, len(spaces)+1)
	for _, sp := range spaces {
		keys = append(keys, schema.GenerationKey(sp.id))
	}
	found, err := readItems(ctx, c.client, c.table, append(keys, schema.AllGenerationKey()))
	if err != nil {
		return 0, nil, fmt.Errorf("generations: %w", err)
	}
	if all, err = schema.ParseCounter(c.table, schema.AllGenerationKey(), found[schema.AllGenerationKey()]); err != nil {
		return 0, nil, err
	}
	counters = make([]counter, len(keys))
	for i, k := range keys {
		counters[i].value, counters[i].err = schema.ParseCounter(c.table, k, found[k])
	}
	return all, counters, nil
}

// Subscribe implements limiter.Catalog.
func (c *catalog) Subscribe(fn func(limiter.Change)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.subscriber = fn
}
