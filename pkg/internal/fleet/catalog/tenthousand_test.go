package catalog

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
)

// storeEntities stores entities as Edit would, many in one request.
func storeEntities(ctx context.Context, client awsdb.Client, table, ns string, n int) error {
	var g errgroup.Group
	g.SetLimit(4)
	for first := 0; first < n; first += maxBatchWrite {
		g.Go(func() error {
			var writes []types.WriteRequest
			for i := first; i < min(first+maxBatchWrite, n); i++ {
				e := limiter.Entity{ID: fmt.Sprintf("key/%05d", i), Parent: "org", Version: uint64(i) + 1, CreatedAt: time.UnixMilli(1_800_000_000_000)} // #nosec G115 -- above 0
				writes = append(writes, types.WriteRequest{PutRequest: &types.PutRequest{Item: schema.EntityItem(ns, limiter.Record{Entity: &e})}})
			}
			out, err := client.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{table: writes}})
			if err == nil && len(out.UnprocessedItems) > 0 {
				err = fmt.Errorf("%d items are left over", len(out.UnprocessedItems[table]))
			}
			return err
		})
	}
	return g.Wait()
}

// counted is a client that counts its reads.
type counted struct {
	awsdb.Client
	queries, batches, gets atomic.Int64
}

func (c *counted) Query(ctx context.Context, in *dynamodb.QueryInput, opts ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	c.queries.Add(1)
	return c.Client.Query(ctx, in, opts...)
}

func (c *counted) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	c.batches.Add(1)
	return c.Client.BatchGetItem(ctx, in, opts...)
}

func (c *counted) GetItem(ctx context.Context, in *dynamodb.GetItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	c.gets.Add(1)
	return c.Client.GetItem(ctx, in, opts...)
}

// A fleet lists ten thousand entities at the cost of a query a page: a page that begins in one
// partition of the index and ends in the next takes a query of each. The records of a page are
// read a hundred in a request.
func TestTenThousandEntities(t *testing.T) {
	for name, test := range map[string]struct {
		client  awsdb.Client
		n, size int // entities in all, and of a page
	}{
		"in memory":      {dynamofake.New(), 10_000, limiter.MaxPage},
		"DynamoDB Local": {dynamotest.Start(t).Client(t), manyEntities, limiter.DefaultPage},
	} {
		t.Run(name, func(t *testing.T) {
			client := &counted{Client: test.client}
			c := newTestCatalog(t, client)
			ns, err := c.NamespaceID(t.Context(), limiter.DefaultNamespace)
			if err == nil {
				err = storeEntities(t.Context(), client, c.table.name, ns, test.n)
			}
			if err != nil {
				t.Fatal(err)
			}
			client.list(t, c, limiter.Page{Size: test.size}, limiter.EntityFilter{}, schema.IndexPartitions, test.n)
			client.list(t, c, limiter.Page{Size: test.size}, limiter.EntityFilter{Parent: "org"}, 1, test.n)
		})
	}
}

// list lists n entities page by page, from an index in partitions, and compares the
// requests with the number of pages.
func (c *counted) list(t *testing.T, from *Catalog, p limiter.Page, f limiter.EntityFilter, partitions, n int) {
	t.Helper()
	queries, batches, gets := c.queries.Load(), c.batches.Load(), c.gets.Load()
	began, seen, pages := time.Now(), make(map[string]bool), 0
	for again := true; again; again = p.After != "" {
		page, err := from.ListEntities(t.Context(), limiter.DefaultNamespace, f, p)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page.Items {
			seen[e.Record.Entity.ID] = true
		}
		if page.Next != "" && len(page.Items) != p.Size {
			t.Fatalf("a page of %d that has a next one, want %d", len(page.Items), p.Size)
		}
		p.After = page.Next
		pages++
	}
	queries, batches, gets = c.queries.Load()-queries, c.batches.Load()-batches, c.gets.Load()-gets
	t.Logf("%d entities in pages of %d: %d pages, %d queries, %d batches, %d gets, in %v", len(seen), p.Size, pages, queries, batches, gets, time.Since(began))
	if len(seen) != n {
		t.Errorf("%d entities, want %d", len(seen), n)
	}
	most := int64(pages + partitions)
	if queries > most || batches > int64(n/maxBatchGet)+most || gets > int64(pages) {
		t.Errorf("%d queries, %d batches and %d gets for %d pages of %d; want a query a page and one for each of %d partitions", queries, batches, gets, pages, p.Size, partitions)
	}
}
