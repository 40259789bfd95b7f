package storetest

import (
	"errors"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// budgetChecks are about the budgets of limits.
func budgetChecks() []controlCheck {
	return []controlCheck{
		{name: "budgets/kept with their limits", run: checkBudgetsKept},
		{name: "budgets/refused", run: checkBudgetsRefused},
	}
}

// budgets returns a record of two limits with budgets.
func (o operator) budgets(all ...limiter.Budget) limiter.Record {
	o.Helper()
	budgets, err := limiter.NewBudgets(all...)
	if err != nil {
		o.Fatal(err)
	}
	return limiter.Record{Limits: o.limits(limiter.PerDay("a", 1), limiter.PerDay("a_b.c-d", 2)), Budgets: budgets}
}

// checkBudgetsKept: a change of budgets alone is a change, which is listed and audited. Switches
// keep budgets, and a deletion of their limits deletes them.
func checkBudgetsKept(t T, s ControlStore) {
	o := newOperator(t, s)
	day, month := limiter.Budget{Limit: "a", Window: limiter.UsageDay, Tokens: 1}, limiter.Budget{Limit: "a_b.c-d", Window: limiter.UsageMonth, Tokens: limiter.MaxTokens}
	for _, ref := range []limiter.Ref{
		limiter.SystemLimitsRef(), limiter.ResourceLimitsRef("r"), limiter.EntityLimitsRef("e", "r"), limiter.EntityLimitsRef("e", limiter.DefaultResource),
	} {
		before := limiter.Record{}
		for _, after := range []limiter.Record{o.budgets(), o.budgets(day), o.budgets(day, month), o.budgets(day, month), o.budgets(month), o.budgets(), {}} {
			changed := !after.Equal(before)
			_, generation := o.readAt("ns")
			done := o.edit(t.Context(), ref, after)
			if done.Changed != changed || !done.Before.Equal(before) || !done.After.Equal(after) {
				t.Fatalf("Edit of %+v: %+v; want changed = %t", ref, done, changed)
			}
			o.wantStored(ref, after, generation, changed)
			before = after
		}
		o.wantListed(ref, o.budgets(day, month))
		o.wantAuditedBudgets(ref, o.budgets(day, month))
	}
	if err := s.PutLimits(t.Context(), "ns", limiter.ResourceLimitsRef("put"), o.budgets(month)); err != nil {
		t.Fatal(err)
	}
	for _, ref := range []limiter.Ref{limiter.ResourceLimitsRef("put"), limiter.SystemLimitsRef()} {
		want := o.edit(t.Context(), ref, o.budgets(month)).After
		for _, to := range []limiter.Switch{limiter.Disable, limiter.Enable} {
			if _, err := s.Edit(t.Context(), at(8), "ns", limiter.Edit{Ref: ref, Switch: to}); err != nil {
				t.Fatal(err)
			}
			want.Disabled = to == limiter.Disable
			if got := o.read("ns", ref)[0]; !got.Equal(want) {
				t.Errorf("%+v after switch %d: %+v, want %+v", ref, to, got, want)
			}
		}
	}
}

// wantListed stores limits, and requires the same in a list and by Get.
func (o operator) wantListed(ref limiter.Ref, want limiter.Record) {
	o.Helper()
	o.edit(o.Context(), ref, want)
	if got, err := o.store.Get(o.Context(), "ns", ref); err != nil || !got.Equal(want) {
		o.Errorf("Get of %+v: %+v, %v; want %+v", ref, got, err, want)
	}
	found := false
	for _, stored := range all(o, 10, func(p limiter.Page) (limiter.PageOf[limiter.Stored], error) {
		return o.store.ListLimits(o.Context(), "ns", limiter.LimitsFilter{}, p)
	}) {
		if stored.Ref == ref {
			found = stored.Record.Equal(want)
		}
	}
	if !found {
		o.Errorf("%+v is not listed with %+v", ref, want)
	}
}

// wantAuditedBudgets requires that the newest event of limits has a record, if the store has
// events.
func (o operator) wantAuditedBudgets(ref limiter.Ref, want limiter.Record) {
	o.Helper()
	if !o.store.Capabilities().AuditLogging {
		return
	}
	got := o.events(1, ref)
	if len(got) == 0 || got[0].Action != limiter.ActionPutLimits || !got[0].After.Equal(want) {
		o.Errorf("the newest event of %+v is %+v; want it after %+v", ref, got[:min(1, len(got))], want)
	}
}

// checkBudgetsRefused: a budget of a limit that does not exist, of an unlimited one and of an
// entity is refused.
func checkBudgetsRefused(t T, s ControlStore) {
	o := newOperator(t, s)
	day, other := limiter.Budget{Limit: "a", Window: limiter.UsageDay, Tokens: 1}, limiter.Budget{Limit: "other", Window: limiter.UsageDay, Tokens: 1}
	unlimited, entity := o.budgets(day), o.budgets(day)
	unlimited.Limits = o.limits(limiter.Unlimited("a"))
	entity.Limits, entity.Entity = nil, &limiter.Entity{ID: "e"}
	for name, put := range map[string]struct {
		ref    limiter.Ref
		record limiter.Record
	}{
		"of no limit":     {limiter.SystemLimitsRef(), o.budgets(day, other)},
		"of an unlimited": {limiter.ResourceLimitsRef("r"), unlimited},
		"of an entity":    {limiter.EntityRef("e"), entity},
	} {
		if _, err := s.Edit(t.Context(), at(7), "ns", limiter.Edit{Ref: put.ref, Change: to(put.record)}); !errors.Is(err, limiter.ErrInvalid) {
			t.Errorf("%s: %v, want %v", name, err, limiter.ErrInvalid)
		}
		if got := o.read("ns", put.ref)[0]; !got.Empty() {
			t.Errorf("%s: stored is %+v", name, got)
		}
	}
}
