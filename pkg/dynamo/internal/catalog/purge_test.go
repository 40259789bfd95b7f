package catalog

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/internal/dynamofake"
	"github.com/ratelimit/ratelimit/internal/dynamotest"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// TestPurge: everything of the namespace goes, nothing of another does, and a
// purge that was broken off goes on.
func TestPurge(t *testing.T) {
	client := dynamotest.Start(t).Client(t)
	proxy := dynamotest.NewProxy(t, dynamotest.Start(t).URL, nil)
	c := newTestCatalog(t, dynamotest.NewClient(proxy.URL, nil))
	sp, err := c.use(t.Context(), ns)
	if err != nil {
		t.Fatalf("use: %v", err)
	}
	const entities = 40
	for i := range entities {
		id := fmt.Sprint("e", i)
		if _, err := c.PutEntity(t.Context(), time.Unix(0, 0), ns, limiter.Entity{ID: id}); err != nil {
			t.Fatalf("PutEntity: %v", err)
		}
		bucket := schema.NewRecord(schema.BucketKey(sp.id, id, "r", 0, 0), schema.BucketIndexes(sp.id, id, "r", 0, 0), limiter.EntityLimitsRef(id, "r"))
		if _, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &c.table.name, Item: bucket}); err != nil {
			t.Fatalf("PutItem: %v", err)
		}
	}
	if err := c.PutLimits(t.Context(), "other", limiter.SystemLimitsRef(), limiter.Record{OnUnavailable: limiter.Deny}); err != nil {
		t.Fatalf("PutLimits: %v", err)
	}
	var deleted []int
	progress := func(n int) { deleted = append(deleted, n) }
	edit := limiter.Edit{Ref: limiter.SystemLimitsRef(), Switch: limiter.DeleteNamespace}
	if _, err := c.Edit(t.Context(), time.Unix(0, 0), ns, edit); err != nil {
		t.Fatal(err)
	}
	let := dynamofake.Step{Op: "TransactWriteItems"}
	refused := dynamofake.Step{Op: "TransactWriteItems", Fault: dynamofake.Fault{Kind: dynamofake.Fail, Err: &types.ResourceNotFoundException{}}}
	proxy.SetPlan(dynamofake.Script(let, let, let, refused)) // the beginning, and two batches
	if err := c.Purge(t.Context(), time.Unix(1, 0), ns, progress); err == nil {
		t.Fatal("a purge that was broken off: no error")
	}
	if len(deleted) != 2 {
		t.Errorf("progress %v of two batches", deleted)
	}
	lost := dynamofake.Step{Op: "TransactWriteItems", Fault: dynamofake.Fault{Kind: dynamofake.LoseReply}}
	contended := dynamofake.Step{Op: "TransactWriteItems", Fault: dynamofake.Fault{Kind: dynamofake.Conflict}}
	proxy.SetPlan(dynamofake.Script(lost, let, contended))
	deleted = nil
	if err := c.Purge(t.Context(), time.Unix(2, 0), ns, progress); err != nil {
		t.Fatalf("Purge: %v", err)
	}
	if !slices.IsSorted(deleted) || len(deleted) == 0 {
		t.Errorf("progress %v", deleted)
	}
	wantLeft(t, client, c.table.name, sp.id, map[string]int{"GENERATION": 1, "CONFIG": 1, "CHANGE": 1, "AUDIT": 3})
	records := make([]limiter.Record, 1)
	if _, err := c.Read(t.Context(), "other", []limiter.Ref{limiter.SystemLimitsRef()}, records); err != nil || records[0].OnUnavailable != limiter.Deny {
		t.Errorf("another namespace has lost its limits: %+v, %v", records[0], err)
	}
	if err := c.Purge(t.Context(), time.Unix(3, 0), ns, nil); err != nil {
		t.Errorf("Purge of nothing: %v", err)
	}
}

// wantLeft requires what is left in a namespace, by kind.
func wantLeft(t *testing.T, client *dynamodb.Client, table, id string, want map[string]int) {
	t.Helper()
	got := make(map[string]int)
	pages := dynamodb.NewScanPaginator(client, &dynamodb.ScanInput{TableName: &table})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatalf("Scan: %v", err)
		}
		for _, item := range page.Items {
			k, err := schema.ItemKey(table, item)
			if err != nil {
				t.Fatalf("itemKey: %v", err)
			}
			if strings.HasPrefix(k.PK, id+"/") {
				kind, _, _ := strings.Cut(k.SK[1:], "#")
				got[kind]++
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("left, by kind (-want +got):\n%s", diff)
	}
}
