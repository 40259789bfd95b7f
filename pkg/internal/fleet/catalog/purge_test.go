package catalog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
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
		bucket := schema.NewRecord(schema.BucketKey(sp.id, limiter.BucketKey{Entity: id, Resource: "r"}, 0), schema.BucketIndexes(sp.id, limiter.BucketKey{Entity: id, Resource: "r"}, 0), limiter.EntityLimitsRef(id, "r"))
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
	wantLeft(t, client, c.table.name, sp.id, map[string]int{"GENERATION": 2, "CONFIG": 1, "CHANGE": 1, "AUDIT": 3})
	records := make([]limiter.Record, 1)
	if _, err := c.Read(t.Context(), "other", []limiter.Ref{limiter.SystemLimitsRef()}, records); err != nil || records[0].OnUnavailable != limiter.Deny {
		t.Errorf("another namespace has lost its limits: %+v, %v", records[0], err)
	}
	if err := c.Purge(t.Context(), time.Unix(3, 0), ns, nil); err != nil {
		t.Errorf("Purge of nothing: %v", err)
	}
}

// TestALatePurgeDeletesNothing: a transaction of a purge that arrives when the namespace has
// been created anew is refused. So is one of an earlier purge during a later one.
func TestALatePurgeDeletesNothing(t *testing.T) {
	db := dynamofake.New()
	c := newTestCatalog(t, db)
	other := openTestCatalog(t, db, c.table.name)
	move := func(c *Catalog, by limiter.Switch) {
		t.Helper()
		if _, err := c.Edit(t.Context(), time.Unix(0, 0), ns, limiter.Edit{Ref: limiter.SystemLimitsRef(), Switch: by}); err != nil {
			t.Fatal(err)
		}
	}
	for _, again := range []bool{false, true} {
		putPerDay(t, c, limiter.ResourceLimitsRef("r"), 1)
		move(c, limiter.DeleteNamespace) // so that it has the generation, and begins at once
		gate := dynamofake.NewGate()
		begin := dynamofake.Step{Op: "TransactWriteItems"}
		db.SetPlan(dynamofake.Script(begin, dynamofake.Step{Op: "TransactWriteItems", Fault: dynamofake.Fault{Kind: dynamofake.HoldRequest, Gate: gate}}))
		late := make(chan error)
		go func() { late <- c.Purge(t.Context(), time.Unix(0, 0), ns, nil) }()
		<-gate.Arrived()
		db.SetPlan(nil)
		if err := other.Purge(t.Context(), time.Unix(0, 0), ns, nil); err != nil {
			t.Fatal(err)
		}
		move(other, limiter.CreateNamespace)
		putPerDay(t, other, limiter.ResourceLimitsRef("r"), 2)
		if again {
			move(other, limiter.DeleteNamespace)
			move(other, limiter.BeginPurge)
		}
		gate.Release()
		if err := <-late; !errors.Is(err, limiter.ErrState) {
			t.Errorf("a late purge: error %v, want %v", err, limiter.ErrState)
		}
		if r, err := other.Get(t.Context(), ns, limiter.ResourceLimitsRef("r")); err != nil || capacityOf(r) != 2 {
			t.Errorf("of the records stored after the purge there is %+v, %v", r, err)
		}
	}
}

// TestPurgeWaits: a purge waits once from when the process first saw its beginning, over calls that
// end before.
func TestPurgeWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := dynamofake.New()
		if err := CreateTable(t.Context(), db, "buckets"); err != nil {
			t.Fatal(err)
		}
		c := New(Config{Items: awsdb.ItemsOf(db, "buckets"), Table: "buckets"})
		defer func() {
			if err := c.Close(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
		}()
		for _, by := range []limiter.Switch{limiter.CreateNamespace, limiter.DeleteNamespace} {
			if _, err := c.Edit(t.Context(), time.Now(), ns, limiter.Edit{Ref: limiter.SystemLimitsRef(), Switch: by}); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 { // a purge anew waits anew
			began, calls := time.Now(), 0
			for done := false; !done; calls++ {
				ctx, stop := context.WithTimeout(t.Context(), 5*time.Second)
				err := c.Purge(ctx, time.Now(), ns, nil)
				done = err == nil
				if !done && (ctx.Err() == nil || !errors.Is(err, context.DeadlineExceeded)) {
					t.Fatalf("Purge: %v", err)
				}
				stop()
			}
			if took := time.Since(began); calls != 3 || took < DefaultPurgeWait || took > DefaultPurgeWait+time.Second {
				t.Errorf("purged in %d calls and %v, want 3 calls, and the last after %v", calls, took, DefaultPurgeWait)
			}
		}
	})
}

// TestCorruptState: a namespace whose state is none of those that there are denies nothing and
// admits nothing: its record cannot be read.
func TestCorruptState(t *testing.T) {
	for name, item := range map[string]attributes{
		"unknown": {"state": avS("deleeted"), "state_at": avN("1")}, "a number": {"state": avN("1"), "state_at": avN("1")}, "without a time": {"state": avS("deleted")},
	} {
		db := dynamofake.New()
		c := newTestCatalog(t, db)
		id, err := c.NamespaceID(t.Context(), ns)
		if err != nil {
			t.Fatal(err)
		}
		all := schema.LimitsItem(id, limiter.SystemLimitsRef(), limiter.Record{OnUnavailable: limiter.Deny}, 1)
		maps.Copy(all, item)
		if _, err := db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &c.table.name, Item: all}); err != nil {
			t.Fatal(err)
		}
		records := make([]limiter.Record, 1)
		_, read := c.Read(t.Context(), ns, []limiter.Ref{limiter.SystemLimitsRef()}, records)
		_, got := c.GetNamespace(t.Context(), ns)
		_, listed := c.ListNamespaces(t.Context(), limiter.NamespaceFilter{}, limiter.Page{})
		_, put := c.PutEntity(t.Context(), time.Unix(0, 0), ns, limiter.Entity{ID: "e"})
		purged := c.Purge(t.Context(), time.Unix(0, 0), ns, nil)
		for call, err := range map[string]error{"Read": read, "GetNamespace": got, "ListNamespaces": listed, "PutEntity": put, "Purge": purged} {
			if bad, ok := errors.AsType[*schema.CorruptError](err); !ok || !strings.HasPrefix(bad.Attribute, "state") {
				t.Errorf("%s, %s: error %v, want one that names the attribute", name, call, err)
			}
		}
	}
}

// wantLeft requires the number of items left in a namespace, by kind.
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

// TestAPurgeEndsNoOther: a purge that is late does not end one that has begun after it.
func TestAPurgeEndsNoOther(t *testing.T) {
	c := newTestCatalog(t, dynamofake.New())
	read(t, c)
	system := limiter.SystemLimitsRef()
	purge := func() uint64 {
		for _, to := range []limiter.Switch{limiter.DeleteNamespace, limiter.BeginPurge} {
			if _, err := c.Edit(t.Context(), time.Unix(1, 0), ns, limiter.Edit{Ref: system, Switch: to}); err != nil {
				t.Fatal(err)
			}
		}
		_, generation := read(t, c)
		return generation >> 32 // the counter of changes
	}
	end := func(begun uint64) error {
		_, err := editor{Catalog: c, begun: begun}.amend(t.Context(), time.Unix(2, 0), ns, limiter.Edit{Ref: system, Switch: limiter.EndPurge}, false)
		return err
	}
	first := purge()
	if err := end(first); err != nil {
		t.Fatalf("the end of a purge: %v", err)
	}
	if err := end(first); err != nil {
		t.Errorf("the end once more: %v", err)
	}
	if _, err := c.Edit(t.Context(), time.Unix(3, 0), ns, limiter.Edit{Ref: system, Switch: limiter.CreateNamespace}); err != nil {
		t.Fatal(err)
	}
	second := purge()
	if err := end(first); !errors.Is(err, limiter.ErrState) {
		t.Errorf("the end of the purge before: error %v, want %v", err, limiter.ErrState)
	}
	if err := end(second); err != nil {
		t.Errorf("the end of the purge: %v", err)
	}
}
