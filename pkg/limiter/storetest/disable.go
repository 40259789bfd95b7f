package storetest

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// disableChecks are about limiter.Switch.
func disableChecks() []controlCheck {
	keeps := func(can limiter.BackendCapabilities) bool { return can.AuditLogging }
	return []controlCheck{
		{name: "disable/to and fro", run: checkDisable},
		{name: "disable/outlives changes", run: checkDisabledStays},
		{name: "disable/refused", run: checkDisableRefused},
		{name: "disable/listed", run: checkListDisabled},
		{name: "disable/recorded", run: checkDisableRecorded},
		{name: "disable/decisions", run: checkDisabledDecisions},
		{name: "disable/audited", needs: keeps, run: checkDisableAudited},
	}
}

// flip disables or enables a subject of "ns".
func (o operator) flip(ref limiter.Ref, s limiter.Switch) limiter.Edited {
	o.Helper()
	done, err := o.store.Edit(o.Context(), at(7), "ns", limiter.Edit{Ref: ref, Switch: s})
	if err != nil {
		o.Fatalf("switch %d of %+v: %v", s, ref, err)
	}
	return done
}

// get reads a record of "ns" both ways.
func (o operator) get(ref limiter.Ref) limiter.Record {
	o.Helper()
	got, err := o.store.Get(o.Context(), "ns", ref)
	if err != nil {
		o.Fatalf("Get of %+v: %v", ref, err)
	}
	if read := o.read("ns", ref)[0]; !read.Equal(got) {
		o.Errorf("%+v: Get has %+v, Read has %+v", ref, got, read)
	}
	return got
}

// subjects returns the subjects that can be disabled, each with another record that it may have.
func (o operator) subjects() map[limiter.Ref]limiter.Record {
	o.Helper()
	limits := limiter.Record{Limits: o.limits(limiter.PerDay("l", 1))}
	return map[limiter.Ref]limiter.Record{
		limiter.EntityRef("key/\xff"):  {Entity: &limiter.Entity{ID: "key/\xff", Name: "n", Metadata: map[string]string{"k": "v"}}},
		limiter.ResourceLimitsRef("r"): limits,
		limiter.SystemLimitsRef():      {Limits: limits.Limits, OnUnavailable: limiter.Deny},
	}
}

// checkDisable: the switch is reported, stored and undone, for subjects with a record and without
// one. A dry run and a repetition change nothing.
func checkDisable(t T, s ControlStore) {
	o := newOperator(t, s)
	for ref, record := range o.subjects() {
		for _, with := range []limiter.Record{{}, record} {
			o.edit(t.Context(), ref, with)
			for _, flip := range []limiter.Switch{limiter.Enable, limiter.Disable, limiter.Disable, limiter.Enable} {
				before := o.get(ref)
				want := with
				want.Disabled = flip == limiter.Disable
				_, generation := o.readAt("ns")
				dry, err := s.Edit(t.Context(), at(7), "ns", limiter.Edit{Ref: ref, Switch: flip, DryRun: true})
				if err != nil || dry.Changed != (before.Disabled != want.Disabled) || !dry.After.Equal(want) {
					t.Errorf("%+v, switch %d, dry: %+v, %v; want after it %+v", ref, flip, dry, err, want)
				}
				o.wantStored(ref, before, generation, false)
				if done := o.flip(ref, flip); done.Changed != dry.Changed || !done.Before.Equal(before) || !done.After.Equal(want) {
					t.Errorf("%+v, switch %d: %+v, want after it %+v", ref, flip, done, want)
				}
				o.wantStored(ref, want, generation, dry.Changed)
				o.get(ref)
			}
		}
	}
}

// checkDisabledStays: no change of the record, by any method, and no deletion enables a subject.
// Switches change no limits of an entity.
func checkDisabledStays(t T, s ControlStore) {
	o := newOperator(t, s)
	own := limiter.EntityLimitsRef("key/\xff", "r")
	o.putLimits("ns", own, limiter.PerDay("l", 5))
	for ref, record := range o.subjects() {
		o.flip(ref, limiter.Disable)
		for _, to := range []limiter.Record{record, {}, record} {
			done := o.edit(t.Context(), ref, to)
			want := to
			want.Disabled = true
			if got := o.get(ref); !got.Equal(want) || !done.After.Equal(want) {
				t.Errorf("%+v, changed to %+v: %+v, reported as %+v", ref, to, got, done.After)
			}
		}
		if ref.Kind == limiter.RefEntity {
			e := *o.get(ref).Entity
			e.Name = "other"
			o.putEntity("ns", e)
			if err := s.DeleteEntity(t.Context(), "ns", e.ID); err != nil {
				t.Fatal(err)
			}
		} else if err := s.PutLimits(t.Context(), "ns", ref, limiter.Record{}); err != nil {
			t.Fatal(err)
		}
		if got := o.get(ref); !got.Equal(limiter.Record{Disabled: true}) {
			t.Errorf("%+v, deleted: %+v, want it disabled", ref, got)
		}
	}
	o.putLimits("ns", own, limiter.PerDay("l", 5))
	o.flip(limiter.EntityRef("key/\xff"), limiter.Enable)
	if got := capacity(o.read("ns", own)[0]); got != 5 {
		t.Errorf("limits of an entity that was enabled: capacity %d, want 5", got)
	}
	e := o.putEntity("ns", limiter.Entity{ID: "key/\xff"})
	o.flip(limiter.EntityRef(e.ID), limiter.Disable)
	if got := o.get(limiter.EntityRef(e.ID)).Entity; got == nil || got.Version == e.Version || !got.CreatedAt.Equal(e.CreatedAt) {
		t.Errorf("an entity that was disabled: %+v, want another version of %+v", got, e)
	}
}

// checkDisableRefused: limits of an entity, an entity without an ID and a switch that does not
// exist are invalid.
func checkDisableRefused(t T, s ControlStore) {
	for _, e := range []limiter.Edit{
		{Ref: limiter.EntityLimitsRef("e", "r"), Switch: limiter.Disable},
		{Ref: limiter.EntityRef(""), Switch: limiter.Disable},
		{Ref: limiter.Ref{Kind: 99}, Switch: limiter.Disable},
		{Ref: limiter.EntityRef("e"), Switch: 99},
	} {
		if _, err := s.Edit(t.Context(), at(0), "ns", e); !errors.Is(err, limiter.ErrInvalid) {
			t.Errorf("%+v: error %v, want %q", e, err, limiter.ErrInvalid)
		}
	}
}

// checkListDisabled: disabled subjects are listed apart, and are neither entities nor limits.
func checkListDisabled(t T, s ControlStore) {
	o := newOperator(t, s)
	want := make([]string, 0, 11)
	want = append(want, fmt.Sprint(limiter.SystemLimitsRef()))
	o.flip(limiter.SystemLimitsRef(), limiter.Disable)
	for i := range 5 {
		entity, resource := limiter.EntityRef(fmt.Sprintf("e/%d\xff", i)), limiter.ResourceLimitsRef(fmt.Sprint("r#", i))
		o.flip(entity, limiter.Disable)
		o.flip(resource, limiter.Disable)
		want = append(want, fmt.Sprint(entity), fmt.Sprint(resource))
	}
	o.putEntity("ns", limiter.Entity{ID: "enabled"})
	o.putEntity("ns", limiter.Entity{ID: "e/1\xff"})
	o.putLimits("ns", limiter.ResourceLimitsRef("r#1"), limiter.PerDay("l", 1))
	for _, size := range []int{1, 4, 100} {
		got := make([]string, 0, 11)
		for _, stored := range o.disabled(size) {
			got = append(got, fmt.Sprint(stored.Ref))
		}
		wantSame(t, fmt.Sprintf("disabled, pages of %d", size), want, got)
	}
	entities := all(t, 3, func(p limiter.Page) (limiter.PageOf[limiter.Stored], error) {
		return s.ListEntities(t.Context(), "ns", limiter.EntityFilter{}, p)
	})
	limits := all(t, 3, func(p limiter.Page) (limiter.PageOf[limiter.Stored], error) {
		return s.ListLimits(t.Context(), "ns", limiter.LimitsFilter{}, p)
	})
	if len(entities) != 2 || len(limits) != 1 {
		t.Errorf("entities %+v and limits %+v; want two of those, and one of these", entities, limits)
	}
}

// disabled lists the disabled subjects of "ns".
func (o operator) disabled(size int) []limiter.Stored {
	o.Helper()
	return all(o, size, func(p limiter.Page) (limiter.PageOf[limiter.Stored], error) {
		return o.store.ListDisabled(o.Context(), "ns", p)
	})
}

// checkDisableRecorded: the record and the list say since when, by which principal and why a subject
// was first disabled, for as long as it is.
func checkDisableRecorded(t T, s ControlStore) {
	o := newOperator(t, s)
	caller := func(name, reason string) context.Context {
		return limiter.WithReason(limiter.WithPrincipal(t.Context(), name), reason)
	}
	flip := func(ctx context.Context, ref limiter.Ref, ms int64, by limiter.Switch) {
		t.Helper()
		if _, err := s.Edit(ctx, at(ms), "ns", limiter.Edit{Ref: ref, Switch: by}); err != nil {
			t.Fatal(err)
		}
	}
	want := func(ref limiter.Ref, want *limiter.Disabling) {
		t.Helper()
		if diff := cmp.Diff(want, o.get(ref).Disabling); diff != "" {
			t.Errorf("disabling of %+v (-want +got):\n%s", ref, diff)
		}
		for _, stored := range o.disabled(2) {
			if stored.Ref == ref {
				if diff := cmp.Diff(want, stored.Record.Disabling); diff != "" {
					t.Errorf("listed disabling of %+v (-want +got):\n%s", ref, diff)
				}
			}
		}
	}
	for ref, record := range o.subjects() {
		first := &limiter.Disabling{Since: at(7).UTC(), By: "alice", Reason: "abuse – ticket 7"}
		flip(caller(first.By, first.Reason), ref, 7, limiter.Disable)
		want(ref, first)
		flip(caller("bob \xff", "again"), ref, 8, limiter.Disable)
		o.edit(caller("carol", "other"), ref, record)
		want(ref, first)
		o.edit(t.Context(), ref, limiter.Record{})
		want(ref, first)
		flip(caller("bob \xff", ""), ref, 9, limiter.Enable)
		want(ref, nil)
		flip(t.Context(), ref, 10, limiter.Disable)
		want(ref, &limiter.Disabling{Since: at(10).UTC()})
	}
}

// checkDisabledDecisions: a limiter denies a request that takes from a disabled subject at once,
// and names the subject. It applies charges all the same.
func checkDisabledDecisions(t T, s ControlStore) {
	o := newOperator(t, s)
	l, err := limiter.New(limiter.Config{Store: s, CacheTTL: -1, Timeout: reach})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	o.putLimits("ns", limiter.SystemLimitsRef(), limiter.PerDay("l", 100), limiter.Unlimited("u"))
	o.putEntity("ns", limiter.Entity{ID: "child", Parent: "org", Cascade: true})
	ask := func(limit string) limiter.Decision {
		var d limiter.Decision
		req := limiter.Request{Namespace: "ns", Takes: []limiter.Take{
			{Entity: "child", Resource: "r", Consume: []limiter.Consumption{{Limit: limit, Amount: limiter.Milli}}},
			{Entity: "other", Resource: "s", Mode: limiter.Charge, Consume: []limiter.Consumption{{Limit: "l", Amount: limiter.Milli}}},
		}}
		if err := l.Decide(t.Context(), at(0), &req, &d); err != nil {
			t.Fatalf("Decide: %v", err)
		}
		return d
	}
	for ref, level := range map[limiter.Ref]int{limiter.EntityRef("child"): 0, limiter.EntityRef("org"): 1, limiter.ResourceLimitsRef("r"): 0, limiter.SystemLimitsRef(): 0} {
		o.flip(ref, limiter.Disable)
		for _, limit := range []string{"l", "u"} {
			d := ask(limit)
			if want := (limiter.Disabled{Subject: ref, Level: level}); d.Admitted || d.Reason != limiter.ReasonDisabled || d.Disabled != want || d.RetryAfter != 0 {
				t.Errorf("%+v disabled, limit %s: %+v, want a denial by %+v", ref, limit, d, want)
			}
		}
		o.flip(ref, limiter.Enable)
		if d := ask("l"); !d.Admitted {
			t.Errorf("%+v enabled: %+v", ref, d)
		}
	}
	used := limiter.Op{Bucket: limiter.BucketKey{Namespace: "ns", Entity: "other", Resource: "s"}, Limits: o.limits(limiter.PerDay("l", 100), limiter.Unlimited("u")), Spends: []limiter.Spend{{Limit: "l"}}}
	o.wantBalance(tokens(100-4*3), 0, used)
	used.Bucket.Entity, used.Bucket.Resource = "child", "r"
	o.wantBalance(tokens(100-4), 0, used)
}

// checkDisableAudited: each switch leaves one event, under its subject, with the principal.
func checkDisableAudited(t T, s ControlStore) {
	o := newOperator(t, s)
	alice := limiter.WithPrincipal(t.Context(), "alice")
	for ref, actions := range map[limiter.Ref][2]string{
		limiter.EntityRef("e"):         {limiter.ActionDisableEntity, limiter.ActionEnableEntity},
		limiter.ResourceLimitsRef("r"): {limiter.ActionDisableResource, limiter.ActionEnableResource},
		limiter.SystemLimitsRef():      {limiter.ActionDisableNamespace, limiter.ActionEnableNamespace},
	} {
		for _, flip := range []limiter.Switch{limiter.Disable, limiter.Disable, limiter.Enable, limiter.Enable} {
			if _, err := s.Edit(alice, at(7), "ns", limiter.Edit{Ref: ref, Switch: flip}); err != nil {
				t.Fatal(err)
			}
		}
		disabled := limiter.Record{Disabled: true}
		got := o.events(10, ref)
		if len(got) != 2 || got[0].Action != actions[1] || got[1].Action != actions[0] || got[1].Principal != "alice" ||
			!got[1].After.Equal(disabled) || !got[0].Before.Equal(disabled) || !got[0].After.Empty() {
			t.Errorf("events of %+v: %+v", ref, got)
		}
	}
}
