package embedded

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/ratelimit/ratelimit/pkg/embedded/datafile"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// catalog stores entities and limits. One generation counts for every namespace.
type catalog struct {
	recordSet

	generation atomic.Uint64        // raised when a change is visible
	changing   sync.Mutex           // locked during a whole change, including its commit
	subscriber func(limiter.Change) // guarded by mu
	closed     atomic.Bool

	cfg  *Config
	disk *disk // nil without a file
}

// newCatalog returns an empty catalog. Without a file the disk is nil.
func newCatalog(cfg *Config, d *disk) *catalog {
	c := &catalog{cfg: cfg, disk: d}
	c.names = make(map[string]bool)
	c.replace(make(map[recordID]limiter.Record))
	return c
}

func (c *catalog) close() {
	c.closed.Store(true)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.replace(nil)
}

func (c *catalog) usable(ctx context.Context) error {
	if err := contextErr(ctx); err != nil {
		return err
	}
	if c.closed.Load() {
		return limiter.ErrClosed
	}
	return nil
}

// Read implements limiter.Store.
func (c *catalog) Read(ctx context.Context, namespace string, refs []limiter.Ref, records []limiter.Record) (uint64, error) {
	if ctx.Err() != nil {
		return 0, contextErr(ctx)
	}
	if c.closed.Load() {
		return 0, limiter.ErrClosed
	}
	generation := c.generation.Load() // before the records
	if c.size.Load() == 0 {
		clear(records)
		return generation, nil
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	for i, ref := range refs {
		records[i] = c.records[recordID{Namespace: namespace, Ref: ref}]
	}
	return generation, nil
}

// EmptyCatalog reports whether no namespace has a record, and the generation before the check.
func (c *catalog) EmptyCatalog() (generation uint64, ok bool) {
	generation = c.generation.Load()
	return generation, c.size.Load() == 0 && !c.closed.Load()
}

// RaiseGeneration implements limiter.Store.
func (c *catalog) RaiseGeneration(ctx context.Context) error {
	return c.change(ctx, "", func(*edit) error { return nil })
}

// Subscribe implements limiter.Store.
func (c *catalog) Subscribe(fn func(limiter.Change)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.subscriber = fn
}

// change runs one change of a namespace's records at a time. When fn returns no error, change
// raises the generation and calls the subscriber. With a file the change, its audit event and the
// generation are in the file before any reader sees the change. A commit that has begun is not
// canceled, so the file and the memory agree.
func (c *catalog) change(ctx context.Context, namespace string, fn func(*edit) error) error {
	if err := contextErr(ctx); err != nil {
		return err
	}
	c.changing.Lock()
	defer c.changing.Unlock()
	if c.closed.Load() {
		return limiter.ErrClosed
	}
	e := edit{set: &c.recordSet, namespace: strings.Clone(namespace), generation: c.generation.Load() + 1, by: ctx}
	if err := fn(&e); err != nil {
		return err
	}
	if c.disk != nil {
		if err := c.disk.write(context.WithoutCancel(ctx), e.changes(c.cfg.Now())...); err != nil {
			return err
		}
	}
	if !c.apply(&e) && c.disk == nil {
		return limiter.ErrClosed
	}
	return nil
}

// apply makes a change visible, unless the store is closed.
func (c *catalog) apply(e *edit) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.records == nil {
		return false
	}
	var refs []limiter.Ref
	for _, p := range e.puts {
		c.put(p.key, p.record)
		refs = append(refs, p.key.Ref)
	}
	if e.namespace != "" {
		c.names[e.namespace] = true
	}
	c.generation.Store(e.generation)
	if c.subscriber != nil {
		c.subscriber(limiter.Change{Namespace: e.namespace, Generation: e.generation, Refs: refs})
	}
	return true
}

// load reads the catalog.
func (c *catalog) load(tx *datafile.Tx) error {
	if value := tx.Get(datafile.Meta, []byte(metaGeneration)); value != nil {
		n, size := binary.Uvarint(value)
		if size != len(value) {
			return fmt.Errorf("the generation of limits: %w", errFormat)
		}
		c.generation.Store(n)
	}
	err := tx.Each(datafile.Records, nil, func(key, value []byte) error {
		k, r, err := parseRecord(key, value)
		if err == nil {
			c.put(k, r)
		}
		return err
	})
	return err
}

// replaceAll replaces all records.
func (c *catalog) replaceAll(records map[recordID]limiter.Record, generation uint64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.records == nil {
		return limiter.ErrClosed
	}
	c.replace(records)
	c.generation.Store(generation)
	if c.subscriber != nil {
		c.subscriber(limiter.Change{Generation: generation})
	}
	return nil
}
