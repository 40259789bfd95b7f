package storetest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// directoryChecks are about limiter.Directory.
func directoryChecks() []controlCheck {
	return []controlCheck{
		{name: "directory/entities", run: checkListEntities},
		{name: "directory/limits", run: checkListLimits},
		{name: "directory/namespaces", run: checkListNamespaces},
		{name: "directory/pages that cannot be", run: checkPagesRefused},
	}
}

// checkListEntities: every entity is on one page, with any size of pages, and children are those of
// one parent in one namespace.
func checkListEntities(t T, s ControlStore) {
	o := newOperator(t, s)
	const entities = 23
	want := make([]string, 0, entities)
	var children []string
	for i := range entities {
		e := limiter.Entity{ID: fmt.Sprintf("e/%d\xff\x00#", i*7%entities)}
		if i%3 == 0 {
			e.Parent = "org"
			children = append(children, e.ID)
		}
		want = append(want, e.ID)
		o.putEntity("ns", e)
	}
	o.putEntity("ns", limiter.Entity{ID: "gone"})
	o.edit(t.Context(), limiter.EntityRef("gone"), limiter.Record{})
	o.putEntity("other", limiter.Entity{ID: "elsewhere", Parent: "org"})
	o.putLimits("ns", limiter.EntityLimitsRef("no entity", "r"), limiter.PerDay("l", 1))
	for _, test := range []struct {
		namespace, parent string
		want              []string
	}{{"ns", "", want}, {"ns", "org", children}, {"other", "", []string{"elsewhere"}}, {"other", "org", []string{"elsewhere"}}, {"empty", "", nil}, {"ns", "e", nil}} {
		for _, size := range []int{1, 4, 23, 1000} {
			got := all(t, size, func(p limiter.Page) (limiter.PageOf[limiter.Stored], error) {
				return s.ListEntities(t.Context(), test.namespace, limiter.EntityFilter{Parent: test.parent}, p)
			})
			ids := make([]string, 0, len(got))
			for _, stored := range got {
				e := stored.Record.Entity
				ids = append(ids, e.ID)
				if diff := cmp.Diff(e, o.read(test.namespace, limiter.EntityRef(e.ID))[0].Entity); diff != "" {
					t.Errorf("%q (-listed +stored):\n%s", e.ID, diff)
				}
			}
			wantSame(t, fmt.Sprintf("%s, parent %q, pages of %d", test.namespace, test.parent, size), test.want, ids)
		}
	}
}

// wantSame requires the same names, each as often, in any order.
func wantSame(t T, name string, want, got []string) {
	t.Helper()
	want, got = slices.Clone(want), slices.Clone(got)
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		t.Errorf("%s: got %q, want %q", name, got, want)
	}
}

// checkListLimits: limits of every kind are listed by entity, by resource, and all.
func checkListLimits(t T, s ControlStore) {
	o := newOperator(t, s)
	refs := []limiter.Ref{
		limiter.SystemLimitsRef(), limiter.ResourceLimitsRef("r"), limiter.ResourceLimitsRef("s"),
		limiter.EntityLimitsRef("a", "r"), limiter.EntityLimitsRef("a", limiter.DefaultResource),
		limiter.EntityLimitsRef("b\xff", "r"), limiter.EntityLimitsRef("b\xff", limiter.DefaultResource), limiter.EntityLimitsRef("c", "r"),
	}
	for i, ref := range refs {
		o.putLimits("ns", ref, limiter.PerDay("l", int64(i+1)))
	}
	o.putEntity("ns", limiter.Entity{ID: "a"})
	o.putLimits("other", limiter.ResourceLimitsRef("r"), limiter.PerDay("l", 99))
	for _, f := range []limiter.LimitsFilter{{}, {Entity: "a"}, {Entity: "b\xff", Resource: "r"}, {Resource: "r"}, {Resource: limiter.DefaultResource}, {Entity: "none"}, {Entities: true}, {Entities: true, Resource: "r"}, {General: true}, {General: true, Resource: "r"}, {General: true, Entity: "a"}} {
		var want []string
		for i, ref := range refs {
			if f.Selects(ref) {
				want = append(want, fmt.Sprintf("%+v %d", ref, i+1))
			}
		}
		for _, size := range []int{1, 4, 100} {
			var got []string
			for _, stored := range all(t, size, func(p limiter.Page) (limiter.PageOf[limiter.Stored], error) {
				return s.ListLimits(t.Context(), "ns", f, p)
			}) {
				got = append(got, fmt.Sprintf("%+v %d", stored.Ref, capacity(stored.Record)))
			}
			wantSame(t, fmt.Sprintf("%+v, pages of %d", f, size), want, got)
		}
	}
}

// checkPagesRefused: a size out of range, and text that is no cursor, are invalid.
func checkPagesRefused(t T, s ControlStore) {
	for _, p := range []limiter.Page{{Size: -1}, {Size: limiter.MaxPage + 1}, {After: "not a cursor"}, {After: "AAAAAAAA"}} {
		_, entities := s.ListEntities(t.Context(), "ns", limiter.EntityFilter{}, p)
		_, limits := s.ListLimits(t.Context(), "ns", limiter.LimitsFilter{}, p)
		_, namespaces := s.ListNamespaces(t.Context(), limiter.NamespaceFilter{}, p)
		_, orphans := s.ListOrphans(t.Context(), p)
		lists := map[string]error{"entities": entities, "limits": limits, "namespaces": namespaces, "orphans": orphans}
		if s.Capabilities().AuditLogging {
			_, lists["events"] = s.ListEvents(t.Context(), "ns", limiter.AuditOf(limiter.EntityRef("e")), p)
		}
		for list, err := range lists {
			if !errors.Is(err, limiter.ErrInvalid) {
				t.Errorf("page %+v of %s: error %v, want %q", p, list, err, limiter.ErrInvalid)
			}
		}
	}
}

// checkListNamespaces: a change brings a namespace into use, of any name, and it is on one page. An
// operator's read or list does not.
func checkListNamespaces(t T, s ControlStore) {
	o := newOperator(t, s)
	want := []string{"a/b#c", "k\xff", "~", "plain", "sp ace"}
	for _, name := range want {
		o.putLimits(name, limiter.SystemLimitsRef(), limiter.PerDay("l", 1))
	}
	for _, ref := range []limiter.Ref{limiter.EntityRef("e"), limiter.SystemLimitsRef()} {
		if r, err := s.Get(t.Context(), "read alone", ref); err != nil || !r.Empty() {
			t.Errorf("a record of a namespace not in use: %+v, %v", r, err)
		}
	}
	if page, err := s.ListLimits(t.Context(), "listed alone", limiter.LimitsFilter{}, limiter.Page{}); err != nil || len(page.Items) > 0 {
		t.Errorf("limits of a namespace not in use: %+v, %v", page, err)
	}
	for _, size := range []int{1, 2, 100} {
		got := make([]string, 0, len(want))
		for _, ns := range all(t, size, func(p limiter.Page) (limiter.PageOf[limiter.Namespace], error) {
			return s.ListNamespaces(t.Context(), limiter.NamespaceFilter{}, p)
		}) {
			got = append(got, ns.Name)
		}
		wantSame(t, fmt.Sprintf("namespaces, pages of %d", size), want, got)
	}
}
