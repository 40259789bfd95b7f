package catalog

import (
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/internal/dynamofake"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
)

// TestFormIsSeenByEveryReplica: a namespace of an older version has form 1. Once it is raised,
// each replica sees form 2 by its next poll, and the poll reads its record no more.
func TestFormIsSeenByEveryReplica(t *testing.T) {
	db := dynamofake.New()
	one := newTestCatalog(t, db)
	for _, name := range []string{"a", "b", "c"} {
		_, err := one.table.register(t.Context(), schema.Namespace{Name: name, Form: schema.FormOld}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
	}
	two := openTestCatalog(t, db, one.table.name)
	for _, c := range []*Catalog{one, two} {
		for _, name := range []string{"a", "c"} {
			if _, err := c.use(t.Context(), name); err != nil {
				t.Fatal(err)
			}
			if got := c.Form(name); got != schema.FormOld {
				t.Errorf("namespace %s has form %d, want 1", name, got)
			}
		}
	}
	all, err := Namespaces(t.Context(), db, one.table.name)
	if err != nil || len(all) != 3 {
		t.Fatalf("%d namespaces, %v; want 3", len(all), err)
	}
	for range 2 { // it may be repeated
		if err := RaiseForm(t.Context(), db, one.table.name, all[0]); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []*Catalog{one, two} {
		if err := c.poll(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := []int{c.Form("a"), c.Form("c"), c.Form("unused")}; got[0] != schema.FormNow || got[1] != schema.FormOld || got[2] != schema.FormOld {
			t.Errorf("forms %v, want 2, 1, 1", got)
		}
	}
	if all, err = Namespaces(t.Context(), db, one.table.name); err != nil || all[0].Form != schema.FormNow || all[1].Form != schema.FormOld {
		t.Errorf("namespaces %+v, %v; want the first in form 2", all, err)
	}
}

// TestNewNamespaceHasTheFormOfTheTable: the first namespace of a table has form 2. As long as
// an upgrade has not come to its end, a new one has form 1, which replicas of the older
// version can read.
func TestNewNamespaceHasTheFormOfTheTable(t *testing.T) {
	db := dynamofake.New()
	c := newTestCatalog(t, db)
	form := func(name string) int {
		t.Helper()
		if _, err := c.use(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		return c.Form(name)
	}
	if got := form("m"); got != schema.FormNow {
		t.Errorf("the first namespace has form %d, want 2", got)
	}
	if _, err := c.table.register(t.Context(), schema.Namespace{Name: "x", Form: schema.FormOld}, time.Now()); err != nil {
		t.Fatal(err)
	}
	if got := form("b"); got != schema.FormOld {
		t.Errorf("beside one of form 1 a new namespace has form %d, want 1", got)
	}
	all, err := Namespaces(t.Context(), db, c.table.name)
	if err != nil {
		t.Fatal(err)
	}
	for _, ns := range all {
		if err := RaiseForm(t.Context(), db, c.table.name, ns); err != nil {
			t.Fatal(err)
		}
	}
	if got := form("z"); got != schema.FormNow {
		t.Errorf("after the upgrade a new namespace has form %d, want 2", got)
	}
}

// TestRaiseOfAnotherNamespaceIsRefused: a namespace that was registered anew in between has
// another id, and is left alone.
func TestRaiseOfAnotherNamespaceIsRefused(t *testing.T) {
	db := dynamofake.New()
	c := newTestCatalog(t, db)
	ns, err := c.table.register(t.Context(), schema.Namespace{Name: "a", Form: schema.FormOld}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	ns.Key, ns.ID = schema.NamespaceKey("a"), "AAAAAAAAAAA"
	if err := RaiseForm(t.Context(), db, c.table.name, ns); err == nil {
		t.Error("another namespace is raised")
	}
}
