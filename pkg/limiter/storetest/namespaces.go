package storetest

import (
	"errors"
	"fmt"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// namespaceChecks are about limiter.NamespaceState.
func namespaceChecks() []controlCheck {
	keeps := func(can limiter.BackendCapabilities) bool { return can.AuditLogging }
	return []controlCheck{
		{name: "namespaces/to and fro", run: checkNamespaceStates},
		{name: "namespaces/never in use", run: checkNamespaceUnknown},
		{name: "namespaces/recovered", run: checkNamespaceRecovered},
		{name: "namespaces/changes refused", run: checkNamespaceRefuses},
		{name: "namespaces/decisions", run: checkNamespaceDecisions},
		{name: "namespaces/audited", needs: keeps, run: checkNamespaceAudited},
	}
}

// move changes the state of a namespace.
func (o operator) move(name string, s limiter.Switch) limiter.Edited {
	o.Helper()
	done, err := o.store.Edit(o.Context(), at(7), name, limiter.Edit{Ref: limiter.SystemLimitsRef(), Switch: s})
	if err != nil {
		o.Fatalf("switch %d of namespace %q: %v", s, name, err)
	}
	return done
}

// wantNamespace requires the state of a namespace, from GetNamespace and from both lists.
func (o operator) wantNamespace(name string, want limiter.NamespaceState) {
	o.Helper()
	got, err := o.store.GetNamespace(o.Context(), name)
	if err != nil || got.Name != name || got.State != want || got.Since.IsZero() != (want == limiter.NamespaceActive) {
		o.Fatalf("namespace %q: %+v, %v; want it %s", name, got, err, want)
	}
	for _, f := range []limiter.NamespaceFilter{{}, {Deleted: true}} {
		listed := all(o, 3, func(p limiter.Page) (limiter.PageOf[limiter.Namespace], error) {
			return o.store.ListNamespaces(o.Context(), f, p)
		})
		found := 0
		for _, ns := range listed {
			if !f.Selects(ns) {
				o.Errorf("listed with %+v: %+v", f, ns)
			}
			if ns.Name == name {
				found++
				if diff := cmp.Diff(got, ns); diff != "" {
					o.Errorf("namespace %q (-read +listed):\n%s", name, diff)
				}
			}
		}
		if wanted := f.Selects(got); (found == 1) != wanted || found > 1 {
			o.Errorf("namespace %q, which is %s, is listed %d times with %+v", name, want, found, f)
		}
	}
}

// checkNamespaceStates: namespaces of any name are created, deleted and recovered. Each change is
// reported and listed, and a repetition changes nothing. A dry run changes nothing.
func checkNamespaceStates(t T, s ControlStore) {
	o := newOperator(t, s)
	for i, name := range []string{"a/b#c", "k\xff", "~", "plain", "sp ace"} {
		if i%2 == 0 {
			o.putLimits(name, limiter.SystemLimitsRef(), limiter.PerDay("l", 1))
		} else if done := o.move(name, limiter.CreateNamespace); !done.Changed {
			t.Errorf("creation of namespace %q: %+v", name, done)
		}
		o.wantNamespace(name, limiter.NamespaceActive)
		was := limiter.NamespaceActive
		for _, step := range []struct {
			by limiter.Switch
			to limiter.NamespaceState
		}{
			{limiter.CreateNamespace, limiter.NamespaceActive},
			{limiter.DeleteNamespace, limiter.NamespaceDeleted},
			{limiter.DeleteNamespace, limiter.NamespaceDeleted},
			{limiter.RecoverNamespace, limiter.NamespaceActive},
			{limiter.RecoverNamespace, limiter.NamespaceActive},
			{limiter.DeleteNamespace, limiter.NamespaceDeleted},
		} {
			dry, err := s.Edit(t.Context(), at(7), name, limiter.Edit{Ref: limiter.SystemLimitsRef(), Switch: step.by, DryRun: true})
			if err != nil || dry.Changed != (was != step.to) || dry.Before.State != was || dry.After.State != step.to {
				t.Errorf("%q, switch %d, dry: %+v, %v; want it %s", name, step.by, dry, err, step.to)
			}
			o.wantNamespace(name, was)
			if done := o.move(name, step.by); done.Changed != dry.Changed || done.Before.State != was || done.After.State != step.to {
				t.Errorf("%q, switch %d: %+v, want it %s", name, step.by, done, step.to)
			}
			was = step.to
			o.wantNamespace(name, was)
		}
	}
}

// checkNamespaceUnknown: a namespace that was never in use is not found, and neither a refused
// edit nor a dry run brings it into use.
func checkNamespaceUnknown(t T, s ControlStore) {
	edits := []limiter.Switch{limiter.DeleteNamespace, limiter.RecoverNamespace}
	for _, by := range edits {
		if _, err := s.Edit(t.Context(), at(7), "ns", limiter.Edit{Ref: limiter.SystemLimitsRef(), Switch: by}); !errors.Is(err, limiter.ErrNotFound) {
			t.Errorf("switch %d: error %v, want %v", by, err, limiter.ErrNotFound)
		}
	}
	if err := s.Purge(t.Context(), at(7), "ns", nil); !errors.Is(err, limiter.ErrNotFound) {
		t.Errorf("Purge: error %v, want %v", err, limiter.ErrNotFound)
	}
	dry, err := s.Edit(t.Context(), at(7), "ns", limiter.Edit{Ref: limiter.SystemLimitsRef(), Switch: limiter.CreateNamespace, DryRun: true})
	if err != nil || !dry.Changed {
		t.Errorf("creation, dry: %+v, %v", dry, err)
	}
	if ns, err := s.GetNamespace(t.Context(), "ns"); !errors.Is(err, limiter.ErrNotFound) {
		t.Errorf("GetNamespace: %+v, %v; want %v", ns, err, limiter.ErrNotFound)
	}
	if page, err := s.ListNamespaces(t.Context(), limiter.NamespaceFilter{}, limiter.Page{}); err != nil || len(page.Items) > 0 {
		t.Errorf("ListNamespaces: %+v, %v", page, err)
	}
}

// checkNamespaceRecovered: while a namespace is deleted all its records can be read and listed.
// When it is recovered it has them, and its buckets have their use.
func checkNamespaceRecovered(t T, s ControlStore) {
	o := newOperator(t, s)
	o.putEntity("ns", limiter.Entity{ID: "e", Parent: "org", Cascade: true})
	o.putLimits("ns", limiter.EntityLimitsRef("e", "r"), limiter.PerDay("l", 10))
	o.edit(t.Context(), limiter.SystemLimitsRef(), limiter.Record{Limits: o.limits(limiter.PerDay("l", 5)), OnUnavailable: limiter.Deny})
	o.flip(limiter.EntityRef("gone"), limiter.Disable)
	o.flip(limiter.SystemLimitsRef(), limiter.Disable)
	refs := []limiter.Ref{limiter.EntityRef("e"), limiter.EntityLimitsRef("e", "r"), limiter.SystemLimitsRef(), limiter.EntityRef("gone")}
	before, generation := o.readAt("ns", refs...)
	op := o.one("e", limiter.PerDay("l", 10), limiter.Spend{Take: tokens(4)})
	op.Bucket.Namespace = "ns"
	o.want(true, 0, op)
	for range 2 {
		for _, by := range []limiter.Switch{limiter.DeleteNamespace, limiter.RecoverNamespace} {
			o.move("ns", by)
			after, now := o.readAt("ns", refs...)
			for i := range refs {
				want := before[i]
				if refs[i].Kind == limiter.RefSystemLimits && by == limiter.DeleteNamespace {
					want.State = limiter.NamespaceDeleted
				}
				if !after[i].Equal(want) {
					t.Errorf("switch %d: %+v is %+v, want %+v", by, refs[i], after[i], want)
				}
			}
			if now <= generation {
				t.Errorf("switch %d: generation %d after %d", by, now, generation)
			}
			generation = now
			if page, err := s.ListEntities(t.Context(), "ns", limiter.EntityFilter{}, limiter.Page{}); err != nil || len(page.Items) != 1 {
				t.Errorf("switch %d: entities %+v, %v", by, page, err)
			}
		}
	}
	o.wantBalance(tokens(6), 0, op)
}

// refusedChanges makes every kind of change of entities and limits, and returns the errors.
func (o operator) refusedChanges(name string) map[string]error {
	o.Helper()
	limits := limiter.Record{Limits: o.limits(limiter.PerDay("l", 3))}
	_, entity := o.store.PutEntity(o.Context(), at(8), name, limiter.Entity{ID: "new"})
	errs := map[string]error{
		"PutEntity":    entity,
		"DeleteEntity": o.store.DeleteEntity(o.Context(), name, "e"),
		"PutLimits":    o.store.PutLimits(o.Context(), name, limiter.SystemLimitsRef(), limits),
	}
	for _, e := range []limiter.Edit{
		{Ref: limiter.EntityRef("e"), Change: to(limiter.Record{})},
		{Ref: limiter.EntityLimitsRef("e", "r"), Change: to(limits)},
		{Ref: limiter.ResourceLimitsRef("r"), Change: to(limits), DryRun: true},
		{Ref: limiter.SystemLimitsRef(), Change: to(limiter.Record{})},
		{Ref: limiter.EntityRef("e"), Switch: limiter.Disable},
		{Ref: limiter.SystemLimitsRef(), Switch: limiter.Enable},
	} {
		_, err := o.store.Edit(o.Context(), at(8), name, e)
		errs[fmt.Sprintf("Edit of %+v by switch %d, dry = %t", e.Ref, e.Switch, e.DryRun)] = err
	}
	return errs
}

// checkNamespaceRefuses: a namespace that is not active is not changed, and another one is.
func checkNamespaceRefuses(t T, s ControlStore) {
	o := newOperator(t, s)
	refs := []limiter.Ref{limiter.EntityRef("e"), limiter.EntityLimitsRef("e", "r"), limiter.SystemLimitsRef(), limiter.ResourceLimitsRef("r"), limiter.EntityRef("new")}
	o.putEntity("ns", limiter.Entity{ID: "e"})
	o.putLimits("ns", limiter.EntityLimitsRef("e", "r"), limiter.PerDay("l", 10))
	o.move("ns", limiter.DeleteNamespace)
	for range 2 {
		before, generation := o.readAt("ns", refs...)
		for change, err := range o.refusedChanges("ns") {
			if !errors.Is(err, limiter.ErrState) {
				t.Errorf("%s in a namespace that is %s: error %v, want %v", change, before[2].State, err, limiter.ErrState)
			}
		}
		after, now := o.readAt("ns", refs...)
		for i := range refs {
			if !after[i].Equal(before[i]) {
				t.Errorf("%+v was %+v, and is %+v", refs[i], before[i], after[i])
			}
		}
		if now != generation {
			t.Errorf("generation %d, and %d before", now, generation)
		}
		o.purge("ns")
	}
	o.putLimits("other", limiter.SystemLimitsRef(), limiter.PerDay("l", 1))
	for _, by := range []limiter.Switch{limiter.DeleteNamespace, limiter.RecoverNamespace} {
		if _, err := s.Edit(t.Context(), at(8), "ns", limiter.Edit{Ref: limiter.SystemLimitsRef(), Switch: by}); !errors.Is(err, limiter.ErrState) {
			t.Errorf("switch %d of a purged namespace: error %v, want %v", by, err, limiter.ErrState)
		}
	}
}

// checkNamespaceDecisions: a limiter denies every request that would take, from the deletion until
// the recovery or the next creation, and applies charges.
func checkNamespaceDecisions(t T, s ControlStore) {
	o := newOperator(t, s)
	l, err := limiter.New(limiter.Config{Store: s, CacheTTL: -1, Timeout: reach})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := l.SetStatic(t.Context(), limiter.Static{System: o.limits(limiter.PerDay("l", 100))}); err != nil {
		t.Fatal(err)
	}
	ask := func(want limiter.NamespaceState) {
		t.Helper()
		var d limiter.Decision
		req := limiter.Request{Namespace: "ns", Takes: []limiter.Take{
			{Entity: "e", Resource: "r", Consume: []limiter.Consumption{{Limit: "l", Amount: limiter.Milli}}},
			{Entity: "charged", Resource: "r", Mode: limiter.Charge, Consume: []limiter.Consumption{{Limit: "l", Amount: limiter.Milli}}},
		}}
		if err := l.Decide(t.Context(), at(0), &req, &d); err != nil {
			t.Fatalf("Decide: %v", err)
		}
		if want == limiter.NamespaceActive {
			if !d.Admitted {
				t.Errorf("an active namespace: %+v", d)
			}
			return
		}
		denied := limiter.Disabled{Subject: limiter.SystemLimitsRef(), State: want}
		if d.Admitted || d.Reason != limiter.ReasonDisabled || d.Disabled != denied || d.RetryAfter != 0 {
			t.Errorf("a namespace that is %s: %+v, want a denial by %+v", want, d, denied)
		}
	}
	o.putLimits("ns", limiter.SystemLimitsRef(), limiter.PerDay("l", 50))
	ask(limiter.NamespaceActive)
	o.move("ns", limiter.DeleteNamespace)
	ask(limiter.NamespaceDeleted)
	o.move("ns", limiter.RecoverNamespace)
	ask(limiter.NamespaceActive)
	charged := o.one("charged", limiter.PerDay("l", 50), limiter.Spend{})
	charged.Bucket.Namespace = "ns"
	o.wantBalance(tokens(50-3), 0, charged)
	o.move("ns", limiter.DeleteNamespace)
	o.move("ns", limiter.BeginPurge)
	ask(limiter.NamespacePurging)
	o.purge("ns")
	ask(limiter.NamespacePurged)
	o.move("ns", limiter.CreateNamespace)
	ask(limiter.NamespaceActive)
}

// checkNamespaceAudited: each change of the state leaves one event with the principal.
func checkNamespaceAudited(t T, s ControlStore) {
	o := newOperator(t, s)
	alice := limiter.WithPrincipal(t.Context(), "alice")
	for _, by := range []limiter.Switch{limiter.CreateNamespace, limiter.CreateNamespace, limiter.DeleteNamespace, limiter.DeleteNamespace, limiter.RecoverNamespace, limiter.DeleteNamespace} {
		if _, err := s.Edit(alice, at(7), "ns", limiter.Edit{Ref: limiter.SystemLimitsRef(), Switch: by}); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := s.Purge(alice, at(7), "ns", nil); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		"namespace.purged", "namespace.purge", "namespace.purged", "namespace.purge",
		"namespace.delete", "namespace.recover", "namespace.delete", "namespace.create",
	}
	got := make([]string, 0, len(want))
	for _, e := range o.events(3, limiter.SystemLimitsRef()) {
		got = append(got, e.Action)
		if e.Principal != "alice" || (e.Action == "namespace.delete") != (e.After.State == limiter.NamespaceDeleted) {
			t.Errorf("event %+v", e)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}
