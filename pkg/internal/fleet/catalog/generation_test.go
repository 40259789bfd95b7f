package catalog

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
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
// uses, and writes nothing that another namespace reads. The generation of another replica stays
// below it until that one raises its own: limits of a file are as new as the file.
func TestRaiseIsOfTheNamespacesInUse(t *testing.T) {
	db := dynamofake.New()
	a := newTestCatalog(t, db)
	both, fresh := openTestCatalog(t, db, a.table.name), openTestCatalog(t, db, a.table.name)
	generationOf(t, a, "web")
	wantGenerations(t, "before", both, map[string]uint64{"web": 0, "other": 0})
	raise(t, a)
	wantGenerations(t, "the caller", a, map[string]uint64{"web": 1})
	poll(t, both)
	wantGenerations(t, "after a poll", both, map[string]uint64{"web": 0, "other": 0})
	wantGenerations(t, "a replica that starts", fresh, map[string]uint64{"web": 1, "other": 0})
	raise(t, both)
	poll(t, a)
	wantGenerations(t, "of the one that raised first", a, map[string]uint64{"web": 1})
	wantGenerations(t, "of the one that raised last", both, map[string]uint64{"web": 2, "other": 1})
	raise(t, a)
	wantGenerations(t, "of the first, again", a, map[string]uint64{"web": 3})
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
	wantGenerations(t, "another replica", b, map[string]uint64{"web": 0})
}

// TestChangesAreAboveConfigurations: stored limits that were replaced never count as newer than
// those that replaced them, after any configuration that a replica has read since.
func TestChangesAreAboveConfigurations(t *testing.T) {
	db := dynamofake.New()
	stale := newTestCatalog(t, db)
	generationOf(t, stale, ns)
	changes := openTestCatalog(t, db, stale.table.name)
	generationOf(t, changes, ns)
	for range 3 {
		raise(t, stale)
	}
	putPerDay(t, changes, limiter.SystemLimitsRef(), 1)
	if old, now := generationOf(t, stale, ns), generationOf(t, changes, ns); now <= old {
		t.Errorf("the generation of a change is %d, below that of a replica that has not read it, %d", now, old)
	}
	poll(t, stale)
	if old, now := generationOf(t, changes, ns), generationOf(t, stale, ns); now <= old {
		t.Errorf("the generation of the last configuration is %d, below that of an earlier one, %d", now, old)
	}
}

// TestCountersHaveABound: a counter that does not fit into a generation is an error.
func TestCountersHaveABound(t *testing.T) {
	for _, attr := range []string{schema.AttrCounter, schema.AttrConfiguration} {
		for value, ok := range map[uint64]bool{schema.MaxCounter: true, schema.MaxCounter + 1: false} {
			_, err := schema.ParseCounters("t", "n", map[string]types.AttributeValue{attr: schema.NumberAttribute(value)})
			if (err == nil) != ok {
				t.Errorf("%s of %d: %v", attr, value, err)
			}
		}
	}
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

// TestRaisesAtOnce: replicas that raise at once all have generations of their own.
func TestRaisesAtOnce(t *testing.T) {
	db := dynamofake.New()
	first := newTestCatalog(t, db)
	var g errgroup.Group
	all := make([]*Catalog, 8)
	for i := range all {
		c := openTestCatalog(t, db, first.table.name)
		generationOf(t, c, ns)
		all[i] = c
		g.Go(func() error { return c.RaiseGeneration(context.WithoutCancel(t.Context())) })
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	got := make([]uint64, 0, len(all))
	for _, c := range all {
		got = append(got, generationOf(t, c, ns))
	}
	slices.Sort(got)
	if diff := cmp.Diff([]uint64{1, 2, 3, 4, 5, 6, 7, 8}, got); diff != "" {
		t.Errorf("generations (-want +got):\n%s", diff)
	}
}

// TestRaisesAndChangesHaveOneOrder: the generation rises with an own raise, and with a change of any
// replica. A raise is one update, and other replicas learn nothing of it.
func TestRaisesAndChangesHaveOneOrder(t *testing.T) {
	db := dynamofake.New()
	a := newTestCatalog(t, db)
	b := openTestCatalog(t, db, a.table.name)
	generationOf(t, a, ns)
	toB := listen(b)
	generationOf(t, b, ns)
	wantCalls(t, db, map[string]int{"UpdateItem": 1}, func() { raise(t, a) })
	poll(t, b)
	toB.want(t, b, "a raise by another replica")
	raise(t, b)
	toB.want(t, b, "an own raise", toldRaised(0, 2))
	putPerDay(t, a, limiter.SystemLimitsRef(), 1)
	poll(t, b)
	toB.want(t, b, "a change by another replica", toldRaised(1, 2, limiter.SystemLimitsRef()))
	putPerDay(t, b, limiter.SystemLimitsRef(), 2)
	toB.want(t, b, "an own change", toldRaised(2, 2, limiter.SystemLimitsRef()))
	poll(t, a)
	wantGenerations(t, "the other replica", a, map[string]uint64{ns: schema.Counters{Changes: 2, Configuration: 1}.Generation()})
}

// TestPollReadsOneItemOfEachNamespace: a poll costs one read for each namespace in use.
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
}

func putPerDayOf(t *testing.T, c *Catalog, namespace string) {
	t.Helper()
	if err := c.PutLimits(t.Context(), namespace, limiter.SystemLimitsRef(), limiter.Record{Limits: mustLimits(t, limiter.PerDay("l", 1))}); err != nil {
		t.Fatal(err)
	}
}
