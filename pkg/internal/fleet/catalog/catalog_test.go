package catalog

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/embedded"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/limiter/storetest"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
)

// catalogOnly is a store whose buckets are in memory, so that the suite tests the
// catalog.
type catalogOnly struct {
	*embedded.Store
	*Catalog
	settlements *Settlements
	// purging keeps a namespace from being created again between the purges of its records and of its
	// buckets, which the store itself does in one.
	purging *sync.Mutex
}

func (s catalogOnly) Read(ctx context.Context, namespace string, refs []limiter.Ref, records []limiter.Record) (uint64, error) {
	return s.Catalog.Read(ctx, namespace, refs, records)
}

func (s catalogOnly) PutEntity(ctx context.Context, now time.Time, namespace string, e limiter.Entity) (limiter.Entity, error) {
	return s.Catalog.PutEntity(ctx, now, namespace, e)
}

func (s catalogOnly) DeleteEntity(ctx context.Context, namespace, id string) error {
	return s.Catalog.DeleteEntity(ctx, namespace, id)
}

func (s catalogOnly) PutLimits(ctx context.Context, namespace string, ref limiter.Ref, r limiter.Record) error {
	return s.Catalog.PutLimits(ctx, namespace, ref, r)
}

func (s catalogOnly) RaiseGeneration(ctx context.Context) error {
	return s.Catalog.RaiseGeneration(ctx)
}

func (s catalogOnly) Edit(ctx context.Context, now time.Time, namespace string, e limiter.Edit) (limiter.Edited, error) {
	if e.Switch == limiter.CreateNamespace {
		s.purging.Lock()
		defer s.purging.Unlock()
	}
	return s.Catalog.Edit(ctx, now, namespace, e)
}

func (s catalogOnly) ListEntities(ctx context.Context, namespace string, f limiter.EntityFilter, p limiter.Page) (limiter.PageOf[limiter.Stored], error) {
	return s.Catalog.ListEntities(ctx, namespace, f, p)
}

func (s catalogOnly) ListLimits(ctx context.Context, namespace string, f limiter.LimitsFilter, p limiter.Page) (limiter.PageOf[limiter.Stored], error) {
	return s.Catalog.ListLimits(ctx, namespace, f, p)
}

func (s catalogOnly) ListNamespaces(ctx context.Context, f limiter.NamespaceFilter, p limiter.Page) (limiter.PageOf[limiter.Namespace], error) {
	return s.Catalog.ListNamespaces(ctx, f, p)
}

func (s catalogOnly) GetNamespace(ctx context.Context, name string) (limiter.Namespace, error) {
	return s.Catalog.GetNamespace(ctx, name)
}

func (s catalogOnly) ListOrphans(ctx context.Context, p limiter.Page) (limiter.PageOf[limiter.Namespace], error) {
	return s.Catalog.ListOrphans(ctx, p)
}

func (s catalogOnly) PurgeOrphan(ctx context.Context, id string, progress func(int)) error {
	return s.Catalog.PurgeOrphan(ctx, id, progress)
}

func (s catalogOnly) ListDisabled(ctx context.Context, namespace string, p limiter.Page) (limiter.PageOf[limiter.Stored], error) {
	return s.Catalog.ListDisabled(ctx, namespace, p)
}

func (s catalogOnly) Get(ctx context.Context, namespace string, ref limiter.Ref) (limiter.Record, error) {
	return s.Catalog.Get(ctx, namespace, ref)
}

func (s catalogOnly) ListEvents(ctx context.Context, namespace string, f limiter.AuditFilter, p limiter.Page) (limiter.PageOf[limiter.AuditEvent], error) {
	return s.Catalog.ListEvents(ctx, namespace, f, p)
}

func (s catalogOnly) Subscribe(fn func(limiter.Change)) { s.Catalog.Subscribe(fn) }

// Settlements have no end of their own: the store that has them refuses calls after it.
func (s catalogOnly) Settle(ctx context.Context, now time.Time, m limiter.Mark) (bool, error) {
	if err := s.usable(ctx); err != nil {
		return false, err
	}
	return s.settlements.Settle(ctx, now, m)
}

func (s catalogOnly) Secret(ctx context.Context, name string, candidate []byte) ([]byte, error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	return s.settlements.Secret(ctx, name, candidate)
}

func (s catalogOnly) Capabilities() limiter.BackendCapabilities {
	return limiter.BackendCapabilities{AuditLogging: true, BatchOperations: true}
}

func (s catalogOnly) Close(ctx context.Context) error {
	if err := s.Catalog.Close(ctx); err != nil {
		return err
	}
	return s.Store.Close(ctx)
}

// Purge purges the records, and then the buckets.
func (s catalogOnly) Purge(ctx context.Context, now time.Time, namespace string, progress func(int)) error {
	s.purging.Lock()
	defer s.purging.Unlock()
	deleted := 0
	if err := s.Catalog.Purge(ctx, now, namespace, func(n int) {
		deleted = n
		if progress != nil {
			progress(n)
		}
	}); err != nil {
		return err
	}
	edit := limiter.Edit{Ref: limiter.SystemLimitsRef()}
	for _, edit.Switch = range []limiter.Switch{limiter.CreateNamespace, limiter.DeleteNamespace} {
		if _, err := s.Store.Edit(ctx, now, namespace, edit); err != nil && !errors.Is(err, limiter.ErrState) {
			return err
		}
	}
	return s.Store.Purge(ctx, now, namespace, func(n int) {
		if progress != nil {
			progress(deleted + n)
		}
	})
}

// TestCatalogConforms is about the catalog alone; that of the whole store is about both.
func TestCatalogConforms(t *testing.T) {
	storetest.Run(t, func(t *testing.T) limiter.Store { return newCatalogOnly(t, dynamofake.New()) })
}

// TestControl: the same of operators.
func TestControl(t *testing.T) {
	storetest.RunControl(t, func(t *testing.T) storetest.ControlStore { return newCatalogOnly(t, dynamofake.New()) })
}

func newCatalogOnly(t *testing.T, client awsdb.Client) catalogOnly {
	t.Helper()
	c := newTestCatalog(t, client)
	return catalogOnly{embedded.New(embedded.Config{}), c, NewSettlements(SettlementsConfig{Items: c.table.items, Table: c.table.name, NamespaceID: c.NamespaceID}), new(sync.Mutex)}
}

// newTestCatalog returns a catalog on a table of its own.
func newTestCatalog(t *testing.T, client awsdb.Client) *Catalog {
	t.Helper()
	table := dynamotest.TableName(t)
	if err := CreateTable(t.Context(), client, table); err != nil {
		t.Fatalf("CreateTable: %v", err)
	}
	return openTestCatalog(t, client, table)
}

// openTestCatalog returns another replica's catalog on a table. It reads changes when the test says so.
func openTestCatalog(t *testing.T, client awsdb.Client, table string) *Catalog {
	t.Helper()
	return openCatalog(t, Config{Items: awsdb.ItemsOf(client, table), Table: table, PurgeWait: -1, Ticks: make(chan time.Time)})
}

func openCatalog(t *testing.T, cfg Config) *Catalog {
	t.Helper()
	c := New(cfg)
	t.Cleanup(func() {
		if err := c.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return c
}
