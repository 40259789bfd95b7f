package catalog

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"golang.org/x/sync/errgroup"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
)

func TestNamespaceIDs(t *testing.T) {
	seen := make(map[string]bool)
	for range 10_000 {
		id := newNamespaceID()
		if !schema.IsNamespaceID(id) || id == schema.RegistryNS || seen[id] {
			t.Fatalf("id %q is no 11 characters that are safe in URLs, or came twice", id)
		}
		if strings.ContainsAny(id[:1], "-_") {
			t.Fatalf("id %q begins like a flag; it must begin with a letter or a digit", id)
		}
		seen[id] = true
	}
}

// TestNamespaceIsRegisteredOnce: replicas that meet a namespace at the same time
// agree on its id, which is found by name and by id.
func TestNamespaceIsRegisteredOnce(t *testing.T) {
	client := dynamotest.Start(t).Client(t)
	first := newTestCatalog(t, client)
	replicas := []*Catalog{first, openTestCatalog(t, client, first.table.name), openTestCatalog(t, client, first.table.name)}
	for _, name := range []string{limiter.DefaultNamespace, "team/a", "", "k\xff"} {
		var mu sync.Mutex
		ids := make(map[string]int)
		var g errgroup.Group
		for caller := range 24 {
			g.Go(func() error {
				sp, err := replicas[caller%len(replicas)].use(t.Context(), name)
				if err != nil {
					return err
				}
				mu.Lock()
				defer mu.Unlock()
				ids[sp.id]++
				return nil
			})
		}
		if err := g.Wait(); err != nil {
			t.Fatalf("use: %v", err)
		}
		if len(ids) != 1 {
			t.Errorf("namespace %q has the ids %v", name, ids)
		}
		for id := range ids {
			for _, k := range []schema.Key{schema.NamespaceKey(name), schema.NamespaceIDKey(id)} {
				out, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &first.table.name, Key: k.Attributes()})
				if err != nil {
					t.Fatalf("GetItem: %v", err)
				}
				r := schema.NewReader(first.table.name, k, out.Item)
				if gotID, gotName := r.Text(schema.AttrNamespaceID), r.Text(schema.AttrNamespaceName); gotID != id || gotName != name || r.Fault != nil {
					t.Errorf("%v: id %q of %q, fault %v; want %q of %q", k, gotID, gotName, r.Fault, id, name)
				}
			}
		}
	}
}

// TestNamespaceIsLookedUpOnce: a namespace costs calls when it is first used, and
// never again.
func TestNamespaceIsLookedUpOnce(t *testing.T) {
	db := dynamofake.New()
	c := newTestCatalog(t, db)
	for _, test := range []struct {
		replica *Catalog
		want    map[string]int
	}{
		{c, map[string]int{"GetItem": 1, "Query": 1, "TransactWriteItems": 1, "BatchGetItem": 1}},
		{c, nil},
		{openTestCatalog(t, db, c.table.name), map[string]int{"GetItem": 1, "BatchGetItem": 1}},
	} {
		before := db.Counts()
		if _, err := test.replica.use(t.Context(), "ns"); err != nil {
			t.Fatalf("use: %v", err)
		}
		for op, n := range db.Counts() {
			if got := n - before[op]; got != test.want[op] {
				t.Errorf("%d calls of %s, want %d", got, op, test.want[op])
			}
		}
	}
}

// TestNamespaceUnderFaults: a fault neither yields a second id nor keeps a caller
// longer than it waits.
func TestNamespaceUnderFaults(t *testing.T) {
	for _, kind := range []dynamofake.Kind{dynamofake.Throttle, dynamofake.Conflict, dynamofake.ServerError, dynamofake.AppliedError, dynamofake.LoseReply} {
		db := dynamofake.New()
		c := newTestCatalog(t, db)
		db.SetPlan(dynamofake.Script(dynamofake.Step{Op: "TransactWriteItems", Fault: dynamofake.Fault{Kind: kind}}, dynamofake.Step{Op: "GetItem", Fault: dynamofake.Fault{Kind: dynamofake.Throttle}}))
		sp, err := c.use(t.Context(), "ns")
		if err != nil {
			t.Fatalf("after %v: %v", kind, err)
		}
		other, err := openTestCatalog(t, db, c.table.name).use(t.Context(), "ns")
		if err != nil || other.id != sp.id {
			t.Errorf("after %v one replica has the id %q, another %q (%v)", kind, sp.id, other.id, err)
		}
		if db.Faults()[kind] == 0 {
			t.Errorf("%v was never injected", kind)
		}
	}
}

func TestNamespaceDoesNotKeepCallers(t *testing.T) {
	db := dynamofake.New()
	c := newTestCatalog(t, db)
	gate := dynamofake.NewGate()
	db.SetPlan(dynamofake.Script(dynamofake.Step{Op: "GetItem", Fault: dynamofake.Fault{Kind: dynamofake.HoldReply, Gate: gate}}))
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-gate.Arrived()
		cancel()
	}()
	if _, err := c.use(ctx, "ns"); !errors.Is(err, context.Canceled) || !errors.Is(err, limiter.ErrUnavailable) {
		t.Errorf("error = %v, want the context's and %q", err, limiter.ErrUnavailable)
	}
	gate.Release()
	if _, err := c.use(t.Context(), "ns"); err != nil {
		t.Errorf("use, when the store answers again: %v", err)
	}
	if got := db.Count("TransactWriteItems"); got != 1 {
		t.Errorf("%d registrations, want 1: that of the caller that left", got)
	}
}

func TestCorruptNamespace(t *testing.T) {
	db := dynamofake.New()
	c := newTestCatalog(t, db)
	record := schema.NamespaceKey("ns").Attributes()
	record[schema.AttrNamespaceID] = avS("../etc")
	if _, err := db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &c.table.name, Item: record}); err != nil {
		t.Fatalf("PutItem: %v", err)
	}
	_, err := c.use(t.Context(), "ns")
	if corrupt, ok := errors.AsType[*schema.CorruptError](err); !ok || corrupt.Attribute != schema.AttrNamespaceID {
		t.Errorf("error = %v, want one that names %s", err, schema.AttrNamespaceID)
	}
}
