package embedded

import (
	"context"

	"github.com/ratelimit/ratelimit/pkg/embedded/datafile"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Store is a limiter.Store, in memory or with a file. Create it with [New] or [Open]. Each of its
// parts implements a part of the contract.
type Store struct {
	*table       // buckets
	*taker       // decisions
	*catalog     // entities and limits, reads
	*editor      // and changes
	*directory   // and lists
	*namespaces  // in use
	*purger      // of namespaces
	*auditLog    // of changes
	*usageLog    // by hour, day and month
	*balances    // lists and adjustments
	*settlements // marks and secrets
	*sweeper     // drops full buckets, expired marks and old rows
	*restorer    // of backups

	cfg      *Config // shared by all parts
	disk     *disk   // nil without a file
	recovery Recovery
}

var _ limiter.Store = (*Store)(nil)

// New returns an empty store and starts its sweeper, which Close stops.
func New(cfg Config) *Store {
	s := assemble(cfg.withDefaults(), nil)
	s.start()
	return s
}

// assemble returns an empty store without goroutines, with a file or nil.
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
	s.balances = &balances{s.table, s.catalog, s.settlements, s.disk, make(chan struct{}, 1)}
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

// Close implements limiter.Store. It stops the sweeper, writes the exact balances to the file, and
// drops all memory. After an error of its context it may be called again.
func (s *Store) Close(ctx context.Context) error {
	s.stop()
	keep := func(map[uint64]*bucket) {}
	if s.disk != nil {
		keep = s.disk.keep
	}
	s.table.close(keep)
	s.catalog.close()
	s.settlements.close()
	if err := closed(ctx, s.done); err != nil || s.disk == nil {
		return err
	}
	if err := s.disk.close(ctx); err != nil {
		return err
	}
	var err error
	s.disk.finished.Do(func() { err = s.disk.finish(ctx) })
	return err
}
