package storetest

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// history makes 24 changes of "ns" by two principals, in turn of an entity, its limits, a resource
// and the system, and changes of another namespace between them. It returns the subjects of the
// events, the newest first.
func (o operator) history() (subjects []limiter.Ref) {
	o.Helper()
	for i := range 24 {
		ref := []limiter.Ref{limiter.EntityRef("e\xff"), limiter.EntityLimitsRef("e\xff", "r"), limiter.ResourceLimitsRef("e\xff"), limiter.SystemLimitsRef()}[i%4]
		ctx := limiter.WithPrincipal(o.Context(), []string{"alice", "bob \xff", "bob \xff"}[i%3])
		record := limiter.Record{Entity: &limiter.Entity{ID: ref.Entity, Name: strconv.Itoa(i)}}
		if ref.Kind != limiter.RefEntity {
			record = limiter.Record{Limits: o.limits(limiter.PerDay("l", int64(i+1)))}
		}
		o.edit(ctx, ref, record)
		o.putLimits("other", limiter.SystemLimitsRef(), limiter.PerDay("l", int64(i+1)))
		subjects = append([]limiter.Ref{ref}, subjects...)
	}
	return subjects
}

// checkAuditOfAll: without a subject the events of every subject of the namespace are listed, and
// none of another, the newest first, on pages of any size.
func checkAuditOfAll(t T, s ControlStore) {
	o := newOperator(t, s)
	if got := o.selected(5, limiter.AuditFilter{}); len(got) != 0 {
		t.Errorf("events of a namespace that was never in use: %+v", got)
	}
	want := o.history()
	for _, size := range []int{1, 5, 24, 100} {
		got := o.selected(size, limiter.AuditFilter{})
		if len(got) != len(want) {
			t.Fatalf("pages of %d: %d events, want %d", size, len(got), len(want))
		}
		for i, e := range got {
			if e.Subject != want[i] || i > 0 && (e.ID >= got[i-1].ID || e.Generation >= got[i-1].Generation) {
				t.Errorf("pages of %d: event %d is %s of %+v; want one of %+v, older than the one before", size, i, e.ID, e.Subject, want[i])
			}
		}
	}
}

// checkAuditFiltered: a list has the events that its filter selects, and all of them.
func checkAuditFiltered(t T, s ControlStore) {
	o := newOperator(t, s)
	o.history()
	entity, resource, system := limiter.EntityRef("e\xff"), limiter.ResourceLimitsRef("e\xff"), limiter.SystemLimitsRef()
	for _, test := range []struct {
		filter limiter.AuditFilter
		want   int
	}{
		{limiter.AuditFilter{Principal: "alice"}, 8},
		{limiter.AuditFilter{Principal: "bob \xff"}, 16},
		{limiter.AuditFilter{Principal: "bob"}, 0},
		{limiter.AuditFilter{Action: limiter.ActionPutEntity}, 6},
		{limiter.AuditFilter{Action: "limits"}, 18},
		{limiter.AuditFilter{Action: "limit"}, 0},
		{limiter.AuditFilter{Action: limiter.ActionPutLimits, Principal: "alice"}, 6},
		{limiter.AuditFilter{Subject: &entity}, 12},
		{limiter.AuditFilter{Subject: &entity, Action: limiter.ActionPutLimits}, 6},
		{limiter.AuditFilter{Subject: &resource}, 6},
		{limiter.AuditFilter{Subject: &system, Principal: "alice"}, 2},
		{limiter.AuditFilter{Subject: &system, Principal: "alice", Action: "entity"}, 0},
	} {
		for _, size := range []int{1, 7, 100} {
			got := o.selected(size, test.filter)
			for _, e := range got {
				if !test.filter.Selects(&e) {
					t.Errorf("%+v, pages of %d: event %+v", test.filter, size, e)
				}
			}
			if len(got) != test.want {
				t.Errorf("%+v, pages of %d: %d events, want %d", test.filter, size, len(got), test.want)
			}
		}
	}
}

// checkAuditOfTime: a list has the events from a time on, and before another, also with a cursor.
func checkAuditOfTime(t T, s ControlStore) {
	o := newOperator(t, s)
	o.history()
	every := o.selected(100, limiter.AuditFilter{})
	middle := every[len(every)/2].Time
	entity := limiter.EntityRef("e\xff")
	for _, f := range []limiter.AuditFilter{
		{From: middle},
		{To: middle},
		{From: middle.Add(time.Nanosecond)},
		{To: middle.Add(time.Nanosecond)},
		{From: middle, To: middle},
		{From: middle, To: middle.Add(time.Millisecond), Subject: &entity},
		{To: middle, Principal: "alice"},
		{From: middle.Add(time.Hour)},
		{To: middle.Add(-time.Hour)},
		{From: middle.Add(-time.Hour), To: middle.Add(time.Hour)},
	} {
		var want []string
		for _, e := range every {
			if f.Selects(&e) {
				want = append(want, e.ID)
			}
		}
		for _, size := range []int{1, 5, 100} {
			got := make([]string, 0, len(want))
			for _, e := range o.selected(size, f) {
				got = append(got, e.ID)
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%+v, pages of %d: %v, want %v", f, size, got, want)
			}
		}
	}
	for _, cursor := range []string{"x", middle.Format(time.RFC3339), every[0].ID + "0"} {
		if page, err := s.ListEvents(t.Context(), "ns", limiter.AuditFilter{}, limiter.Page{After: cursor}); err == nil {
			t.Errorf("cursor %q: %+v, want a refusal", cursor, page)
		}
	}
}

// RunExpiry tests a store that keeps audit events for the shortest time that it can: no list has
// one.
func RunExpiry(t *testing.T, s ControlStore) {
	t.Helper()
	defer closeStore(t, s)
	o := newOperator(t, s)
	o.history()
	for _, f := range []limiter.AuditFilter{{}, limiter.AuditOf(limiter.EntityRef("e\xff")), limiter.AuditOf(limiter.SystemLimitsRef()), {Principal: "alice"}} {
		page, err := s.ListEvents(context.WithoutCancel(t.Context()), "ns", f, limiter.Page{})
		if err != nil || len(page.Items) > 0 {
			t.Errorf("%+v: %d events that have expired, %v", f, len(page.Items), err)
		}
	}
}
