package dynamo

import (
	"context"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/internal/dynamofake"
	"github.com/ratelimit/ratelimit/internal/dynamotest"
	"github.com/ratelimit/ratelimit/pkg/embedded"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/limiter/storetest"
)

// catalogOnly is a store whose buckets are in memory: what the suite says of it
// is about the catalog.
type catalogOnly struct {
	*embedded.Store
	*catalog
}

func (s catalogOnly) Read(ctx context.Context, namespace string, refs []limiter.Ref, records []limiter.Record) (uint64, error) {
	return s.catalog.Read(ctx, namespace, refs, records)
}

func (s catalogOnly) PutEntity(ctx context.Context, now time.Time, namespace string, e limiter.Entity) (limiter.Entity, error) {
	return s.catalog.PutEntity(ctx, now, namespace, e)
}

func (s catalogOnly) DeleteEntity(ctx context.Context, namespace, id string) error {
	return s.catalog.DeleteEntity(ctx, namespace, id)
}

func (s catalogOnly) PutLimits(ctx context.Context, namespace string, ref limiter.Ref, r limiter.Record) error {
	return s.catalog.PutLimits(ctx, namespace, ref, r)
}

func (s catalogOnly) RaiseGeneration(ctx context.Context) error {
	return s.catalog.RaiseGeneration(ctx)
}

func (s catalogOnly) Subscribe(fn func(limiter.Change)) { s.catalog.Subscribe(fn) }

func (s catalogOnly) Capabilities() limiter.BackendCapabilities {
	return limiter.BackendCapabilities{AuditLogging: true, BatchOperations: true}
}

func (s catalogOnly) Close(ctx context.Context) error {
	if err := s.close(ctx); err != nil {
		return err
	}
	return s.Store.Close(ctx)
}

// TestCatalogConforms is about the catalog alone; that of the whole store is about both.
func TestCatalogConforms(t *testing.T) {
	storetest.Run(t, func(t *testing.T) limiter.Store {
		t.Helper()
		return catalogOnly{embedded.New(embedded.Config{}), newTestCatalog(t, dynamofake.New())}
	})
}

// newTestCatalog returns a catalog on a table of its own.
func newTestCatalog(t *testing.T, client Client) *catalog {
	t.Helper()
	table := dynamotest.TableName(t)
	if err := CreateTable(t.Context(), client, table); err != nil {
		t.Fatalf("CreateTable: %v", err)
	}
	return openTestCatalog(t, client, table)
}

// openTestCatalog returns another replica's catalog on a table.
func openTestCatalog(t *testing.T, client Client, table string) *catalog {
	t.Helper()
	c := newCatalog(catalogConfig{Client: client, Table: table})
	t.Cleanup(func() {
		if err := c.close(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return c
}
