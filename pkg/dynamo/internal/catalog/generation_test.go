package catalog

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/ratelimit/ratelimit/internal/dynamofake"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// generationOf returns the generation of a namespace as a catalog has it, and opens the namespace.
func generationOf(t *testing.T, c *Catalog, namespace string) uint64 {
	t.Helper()
	generation, err := c.Read(t.Context(), namespace, nil, nil)
	if err != nil {
		t.Fatalf("Read: %v", err)
	}
	return generation
}

// wantGenerations requires the generations of namespaces, by name, as a catalog has them.
func wantGenerations(t *testing.T, what string, c *Catalog, want map[string]uint64) {
	t.Helper()
	got := make(map[string]uint64)
	for name := range want {
		got[name] = generationOf(t, c, name)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: generations (-want +got):\n%s", what, diff)
	}
}

// TestRaiseIsOfTheNamespacesInUse: a replica raises the generations of the namespaces that it
// uses, and writes nothing that another namespace reads. Other replicas see it by their next poll.
func TestRaiseIsOfTheNamespacesInUse(t *testing.T) {
	db := dynamofake.New()
	a := newTestCatalog(t, db)
	both, fresh := openTestCatalog(t, db, a.table.name), openTestCatalog(t, db, a.table.name)
	generationOf(t, a, "web")
	wantGenerations(t, "before", both, map[string]uint64{"web": 0, "other": 0})
	raise(t, a)
	wantGenerations(t, "the caller", a, map[string]uint64{"web": 1})
	poll(t, both)
	wantGenerations(t, "after a poll", both, map[string]uint64{"web": 1, "other": 0})
	wantGenerations(t, "a replica that starts", fresh, map[string]uint64{"web": 1, "other": 0})
	raise(t, both)
	poll(t, a)
	poll(t, fresh)
	wantGenerations(t, "of two that one raised", a, map[string]uint64{"web": 2})
	wantGenerations(t, "of two that one raised", fresh, map[string]uint64{"web": 2, "other": 1})
}

// TestRaiseOfANamespaceOpenedLater: a namespace that is first used after the call is raised by its
// first use. So limits of the new configuration are newer there, too.
func TestRaiseOfANamespaceOpenedLater(t *testing.T) {
	db := dynamofake.New()
	a := newTestCatalog(t, db)
	b := openTestCatalog(t, db, a.table.name)
	wantGenerations(t, "before", b, map[string]uint64{"web": 0})
	raise(t, a)
	wantGenerations(t, "opened after the call", a, map[string]uint64{"web": 1})
	wantGenerations(t, "opened already", a, map[string]uint64{"web": 1})
	poll(t, b)
	wantGenerations(t, "another replica", b, map[string]uint64{"web": 1})
}

// TestRaiseWhileANamespaceIsOpened: a call that comes between the first read of a namespace and
// its first use is not missed.
func TestRaiseWhileANamespaceIsOpened(t *testing.T) {
	db := dynamofake.New()
	a := newTestCatalog(t, db)
	generationOf(t, openTestCatalog(t, db, a.table.name), "web") // registers it
	gate := dynamofake.NewGate()
	db.SetPlan(dynamofake.Script(dynamofake.Step{Op: "BatchGetItem", Fault: dynamofake.Fault{Kind: dynamofake.HoldReply, Gate: gate}}))
	var g errgroup.Group
	g.Go(func() error {
		_, err := a.Read(t.Context(), "web", nil, nil)
		return err
	})
	<-gate.Arrived()
	raise(t, a)
	gate.Release()
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	wantGenerations(t, "after both", a, map[string]uint64{"web": 1})
}

// TestRaisesAtOnce: replicas that raise at once all have generations of their own, also the first
// above the counter of version 1.
func TestRaisesAtOnce(t *testing.T) {
	for _, all := range []int{0, 7} {
		db := dynamofake.New()
		first := newTestCatalog(t, db)
		for range all {
			version1Raises(t, first)
		}
		var g errgroup.Group
		for range 8 {
			c := openTestCatalog(t, db, first.table.name)
			generationOf(t, c, ns)
			g.Go(func() error { return c.RaiseGeneration(context.WithoutCancel(t.Context())) })
		}
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
		want := uint64(8)
		if all > 0 {
			want = uint64(all) + 8
		}
		wantGenerations(t, fmt.Sprintf("after 8 above %d", all), first, map[string]uint64{ns: want})
	}
}

// version1Raises raises the table's counter as a replica of version 1 does at its start, and
// returns the value.
func version1Raises(t *testing.T, c *Catalog) uint64 {
	t.Helper()
	raised, err := c.table.count(t.Context(), schema.RaiseAll(c.table.name))
	if err != nil {
		t.Fatal(err)
	}
	all, err := schema.ParseCounter(c.table.name, schema.AllGenerationKey(), raised)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// version1Changes raises a namespace's counter of changes as a change by a replica of version 1
// does, which leaves the record of the change and nothing else.
func version1Changes(t *testing.T, c *Catalog, namespace string, base uint64) {
	t.Helper()
	id, err := c.NamespaceID(t.Context(), namespace)
	if err != nil {
		t.Fatal(err)
	}
	in := &dynamodb.TransactWriteItemsInput{}
	in.TransactItems = append(in.TransactItems, schema.RaiseCounter(c.table.name, id, base), putItem(c.table.name, schema.ChangeItem(id, base+1, time.Now(), []limiter.Ref{limiter.SystemLimitsRef()})))
	if _, err := c.table.client.TransactWriteItems(t.Context(), in); err != nil {
		t.Fatal(err)
	}
}

// TestRaiseBesideVersion1: in a namespace of form 1 replicas of both versions have one order of
// generations. Each raise of this version is above those of version 1 before it, and is seen by
// version 1. Changes of version 1 are seen by a poll. After the upgrade generations go on.
func TestRaiseBesideVersion1(t *testing.T) {
	db := dynamofake.New()
	a := newTestCatalog(t, db)
	b := openTestCatalog(t, db, a.table.name)
	if _, err := a.table.register(t.Context(), schema.Namespace{Name: ns, Form: schema.FormOld}, time.Now()); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		version1Raises(t, a)
	}
	generationOf(t, a, ns)
	toB := listen(b)
	generationOf(t, b, ns)
	raise(t, a) // to 6, of both counters
	poll(t, b)
	toB.want(t, b, "raise beside version 1", toldNothing(6))
	if got := version1Raises(t, a); got != 7 {
		t.Errorf("version 1 raises to %d, want 7: it must see raises of this version", got)
	}
	raise(t, b)
	toB.want(t, b, "own raise above that of version 1", told(8))
	version1Changes(t, a, ns, 0)
	poll(t, b)
	toB.want(t, b, "change by version 1", told(9, limiter.SystemLimitsRef()))
	putPerDay(t, b, limiter.SystemLimitsRef(), 1)
	toB.want(t, b, "own change above it", told(10, limiter.SystemLimitsRef()))

	all, err := Namespaces(t.Context(), db, a.table.name)
	if err != nil {
		t.Fatal(err)
	}
	if err := RaiseForm(t.Context(), db, a.table.name, all[0]); err != nil {
		t.Fatal(err)
	}
	poll(t, a)
	poll(t, b)
	toB.want(t, b, "the upgrade")
	wantCalls(t, db, map[string]int{"UpdateItem": 1}, func() { raise(t, b) })
	toB.want(t, b, "own raise after the upgrade", told(11))
	poll(t, a)
	wantGenerations(t, "the other after the upgrade", a, map[string]uint64{ns: 11})
}

// TestPollReadsOneItemOfEachNamespace: of the present form. One of form 1 has three more, among
// them the one with its form, and only until its upgrade.
func TestPollReadsOneItemOfEachNamespace(t *testing.T) {
	db := dynamofake.New()
	c := newTestCatalog(t, db)
	reads := func() (keys int) {
		db.SetPlan(func(call dynamofake.Call) dynamofake.Fault {
			if in, ok := call.Input.(*dynamodb.BatchGetItemInput); ok {
				keys += len(in.RequestItems[c.table.name].Keys)
			}
			return dynamofake.Fault{}
		})
		defer db.SetPlan(nil)
		poll(t, c)
		return keys
	}
	for want := range 5 {
		if got := reads(); got != want {
			t.Errorf("of %d namespaces a poll reads %d items", want, got)
		}
		generationOf(t, c, fmt.Sprint("n", want))
		putPerDayOf(t, c, fmt.Sprint("n", want))
	}
	if _, err := c.table.register(t.Context(), schema.Namespace{Name: ns, Form: schema.FormOld}, time.Now()); err != nil {
		t.Fatal(err)
	}
	generationOf(t, c, ns)
	if got := reads(); got != 5+4 {
		t.Errorf("of 5 namespaces and one of form 1 a poll reads %d items, want 9", got)
	}
}

func putPerDayOf(t *testing.T, c *Catalog, namespace string) {
	t.Helper()
	if err := c.PutLimits(t.Context(), namespace, limiter.SystemLimitsRef(), limiter.Record{Limits: mustLimits(t, limiter.PerDay("l", 1))}); err != nil {
		t.Fatal(err)
	}
}
