package catalog

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
)

// orphan registers a namespace, fills it, and deletes the record of its name, as a program or a
// person could. It returns the ID.
func orphan(t *testing.T, c *Catalog, db *dynamofake.DB, name string) string {
	t.Helper()
	for i := range 30 {
		if _, err := c.PutEntity(t.Context(), time.Unix(0, 0), name, limiter.Entity{ID: fmt.Sprint("e", i)}); err != nil {
			t.Fatal(err)
		}
	}
	id, err := c.NamespaceID(t.Context(), name)
	if err == nil {
		_, err = db.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &c.table.name, Key: schema.NamespaceKey(name).Attributes()})
	}
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// TestOrphans: an ID that its name does not lead to is listed, whether the name has another by now
// or none. It is purged without harm to any other. A purge that was broken off goes on.
func TestOrphans(t *testing.T) {
	db := dynamofake.New()
	first := newTestCatalog(t, db)
	putPerDay(t, first, limiter.SystemLimitsRef(), 7) // of a namespace that is none
	want := []string{orphan(t, first, db, "gone"), orphan(t, first, db, "again\xff")}
	second := openTestCatalog(t, db, first.table.name) // as after a restart
	if _, err := second.PutEntity(t.Context(), time.Unix(0, 0), "again\xff", limiter.Entity{ID: "new"}); err != nil {
		t.Fatal(err)
	}
	list := func() (ids []string) {
		for p := (limiter.Page{Size: 1}); ; {
			page, err := second.ListOrphans(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			for _, ns := range page.Items {
				ids = append(ids, ns.ID)
				if ns.Name != "gone" && ns.Name != "again\xff" || ns.CreatedAt.IsZero() {
					t.Errorf("orphan %+v", ns)
				}
			}
			p.After = page.Next
			if p.After == "" {
				return ids
			}
		}
	}
	slices.Sort(want)
	if got := list(); !slices.Equal(got, want) {
		t.Errorf("orphans %q, want %q", got, want)
	}
	db.SetPlan(dynamofake.Script(dynamofake.Step{Op: "BatchWriteItem"}, dynamofake.Step{Op: "BatchWriteItem", Fault: dynamofake.Fault{Kind: dynamofake.Fail, Err: &types.ResourceNotFoundException{}}}))
	if err := second.PurgeOrphan(t.Context(), want[0], nil); err == nil {
		t.Error("a purge that is broken off: no error")
	}
	db.SetPlan(nil)
	for i, id := range want {
		deleted := 0
		if err := second.PurgeOrphan(t.Context(), id, func(n int) { deleted = n }); err != nil || deleted == 0 {
			t.Errorf("PurgeOrphan: %d deleted, %v", deleted, err)
		}
		if got := list(); !slices.Equal(got, want[i+1:]) {
			t.Errorf("orphans %q, want %q", got, want[i+1:])
		}
		for partition := range schema.IndexPartitions {
			for item, err := range second.table.scan(t.Context(), schema.QueryNamespace(second.table.name, id, partition)) {
				t.Errorf("left: %v, %v", item, err)
			}
		}
		counters := []schema.Key{schema.GenerationKey(id), schema.ConfigurationKey(id)}
		if left, err := second.table.read(t.Context(), counters); err != nil || len(left) > 0 {
			t.Errorf("left of the counters: %v, %v", left, err)
		}
		if err := second.PurgeOrphan(t.Context(), id, nil); !errors.Is(err, limiter.ErrNotFound) {
			t.Errorf("PurgeOrphan once more: error %v, want %v", err, limiter.ErrNotFound)
		}
	}
	if r, err := second.Get(t.Context(), "again\xff", limiter.EntityRef("new")); err != nil || r.Entity == nil {
		t.Errorf("the namespace that has the name now has lost %+v, %v", r, err)
	}
	ns, err := second.GetNamespace(t.Context(), "again\xff")
	if err != nil {
		t.Fatal(err)
	}
	if err := second.PurgeOrphan(t.Context(), ns.ID, nil); !errors.Is(err, limiter.ErrNotFound) {
		t.Errorf("PurgeOrphan of a namespace: error %v, want %v", err, limiter.ErrNotFound)
	}
}
