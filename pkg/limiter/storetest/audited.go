package storetest

import (
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// auditChecks are about limiter.AuditLog.
func auditChecks() []controlCheck {
	keeps := func(can limiter.BackendCapabilities) bool { return can.AuditLogging }
	return []controlCheck{
		{name: "audit/every change", needs: keeps, run: checkAudited},
		{name: "audit/nothing of no change", needs: keeps, run: checkNotAudited},
		{name: "audit/of all subjects", needs: keeps, run: checkAuditOfAll},
		{name: "audit/filtered", needs: keeps, run: checkAuditFiltered},
		{name: "audit/of a time", needs: keeps, run: checkAuditOfTime},
	}
}

// events lists the events of a subject of "ns".
func (o operator) events(size int, subject limiter.Ref) []limiter.AuditEvent {
	o.Helper()
	return o.selected(size, limiter.AuditOf(subject))
}

// selected lists the events of "ns" that a filter selects.
func (o operator) selected(size int, f limiter.AuditFilter) []limiter.AuditEvent {
	o.Helper()
	return all(o, size, func(p limiter.Page) (limiter.PageOf[limiter.AuditEvent], error) {
		return o.store.ListEvents(o.Context(), "ns", f, p)
	})
}

// checkAudited: each change leaves one event under its subject, the newest first, with the
// principal and the reason of the context and the records before and after.
func checkAudited(t T, s ControlStore) {
	o := newOperator(t, s)
	alice, bob := limiter.WithPrincipal(t.Context(), "alice"), limiter.WithReason(limiter.WithPrincipal(t.Context(), "bob \xff"), "bob's reason")
	first, second := limiter.Record{Limits: o.limits(limiter.PerDay("l", 1))}, limiter.Record{Limits: o.limits(limiter.PerDay("l", 2))}
	entity := limiter.Record{Entity: &limiter.Entity{ID: "e", Name: "n", Metadata: map[string]string{"k": "v"}}}
	own := limiter.EntityLimitsRef("e", "r")
	o.edit(alice, limiter.EntityRef("e"), entity)
	o.edit(bob, own, first)
	o.edit(alice, own, second)
	o.edit(t.Context(), own, limiter.Record{})
	o.edit(alice, own, first)
	o.edit(bob, limiter.EntityRef("e"), limiter.Record{})
	o.edit(alice, limiter.SystemLimitsRef(), first)
	o.edit(alice, limiter.ResourceLimitsRef("e"), first)
	type event struct {
		principal, action string
		subject           limiter.Ref
		before, after     limiter.Record
	}
	none := limiter.Record{}
	for subject, want := range map[limiter.Ref][]event{
		limiter.EntityRef("e"): {
			{"bob \xff", limiter.ActionDeleteEntity, limiter.EntityRef("e"), entity, none},
			{"alice", limiter.ActionPutLimits, own, none, first},
			{"", limiter.ActionDeleteLimits, own, second, none},
			{"alice", limiter.ActionPutLimits, own, first, second},
			{"bob \xff", limiter.ActionPutLimits, own, none, first},
			{"alice", limiter.ActionPutEntity, limiter.EntityRef("e"), none, entity},
		},
		limiter.SystemLimitsRef():      {{"alice", limiter.ActionPutLimits, limiter.SystemLimitsRef(), none, first}},
		limiter.ResourceLimitsRef("e"): {{"alice", limiter.ActionPutLimits, limiter.ResourceLimitsRef("e"), none, first}},
		limiter.ResourceLimitsRef("r"): nil,
	} {
		for _, size := range []int{1, 4, 100} {
			got := o.events(size, subject)
			if len(got) != len(want) {
				t.Fatalf("%+v: %d events, want %d", subject, len(got), len(want))
			}
			for i, w := range want {
				g := got[i]
				reason := ""
				if w.principal == "bob \xff" {
					reason = "bob's reason"
				}
				if g.Principal != w.principal || g.Reason != reason || g.Action != w.action || g.Subject != w.subject || !g.Before.Equal(w.before) || !g.After.Equal(w.after) {
					t.Errorf("%+v: event %d is %+v, want %+v", subject, i, g, w)
				}
				if i > 0 && (g.ID >= got[i-1].ID || g.Generation >= got[i-1].Generation) {
					t.Errorf("%+v: event %s, generation %d, stands after %s, %d", subject, g.ID, g.Generation, got[i-1].ID, got[i-1].Generation)
				}
			}
		}
	}
}

// checkNotAudited: a dry run, a change without effect and a refused one leave no event.
func checkNotAudited(t T, s ControlStore) {
	o := newOperator(t, s)
	ref := limiter.ResourceLimitsRef("r")
	o.putLimits("ns", ref, limiter.PerDay("l", 1))
	o.edit(t.Context(), ref, limiter.Record{Limits: o.limits(limiter.PerDay("l", 1))})
	if _, err := s.Edit(t.Context(), at(0), "ns", limiter.Edit{Ref: ref, Change: to(limiter.Record{}), DryRun: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Edit(t.Context(), at(0), "ns", limiter.Edit{Ref: ref, Change: to(limiter.Record{OnUnavailable: limiter.Deny})}); err == nil {
		t.Fatal("a policy of a resource was stored")
	}
	if got := o.events(10, ref); len(got) != 1 || got[0].Action != limiter.ActionPutLimits {
		t.Errorf("events %+v, want that of the first change alone", got)
	}
}
