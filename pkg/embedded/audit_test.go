package embedded

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ratelimit/ratelimit/pkg/embedded/datafile"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

func collect[V any](t *testing.T, all iter.Seq2[V, error]) []V {
	t.Helper()
	var list []V
	for v, err := range all {
		if err != nil {
			t.Fatalf("after %d: %v", len(list), err)
		}
		list = append(list, v)
	}
	return list
}

// eventsOf returns the newest events of a subject, the newest first.
func eventsOf(t *testing.T, s *Store, namespace string, subject limiter.Ref) []limiter.AuditEvent {
	t.Helper()
	page, err := s.ListEvents(t.Context(), namespace, limiter.AuditOf(subject), limiter.Page{Size: limiter.MaxPage})
	if err != nil {
		t.Fatal(err)
	}
	return page.Items
}

// There is one event for each change, under its subject, in order, across restarts.
func TestAuditEvents(t *testing.T) {
	const ns = "default"
	now := time.Date(2026, 11, 21, 2, 0, 0, 123e6, time.UTC)
	dir := t.TempDir()
	cfg := Config{Now: func() time.Time { return now }}
	s := openTest(t, dir, cfg)
	entity, limits, system, resource := limiter.EntityRef("e\xff"), limiter.EntityLimitsRef("e\xff", "k\xff"), limiter.SystemLimitsRef(), limiter.ResourceLimitsRef("gpt-4")
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	stored, err := s.PutEntity(ctx, time.Unix(0, 0), ns, limiter.Entity{ID: "e\xff", Name: "n", Parent: "org", Cascade: true})
	must(err)
	must(s.PutLimits(ctx, ns, limits, limiter.Record{Limits: limitsOf(t, limiter.PerDay("l", 5))}))
	must(s.PutLimits(ctx, ns, system, limiter.Record{Limits: limitsOf(t, limiter.PerMinute("rpm", 60), limiter.Unlimited("tpm")), OnUnavailable: limiter.Deny}))
	if _, err := s.PutEntity(ctx, now, ns, limiter.Entity{ID: "e\xff"}); !errors.Is(err, limiter.ErrConflict) {
		t.Fatalf("PutEntity: error = %v, want ErrConflict", err)
	}
	must(s.RaiseGeneration(ctx))
	must(s.Close(ctx))
	s = openTest(t, dir, cfg)
	must(s.PutLimits(ctx, ns, resource, limiter.Record{Limits: limitsOf(t, limiter.PerDay("l", 6))}))
	must(s.PutLimits(ctx, ns, resource, limiter.Record{}))
	must(s.PutLimits(ctx, "other", resource, limiter.Record{Limits: limitsOf(t, limiter.PerDay("l", 7))}))
	must(s.DeleteEntity(ctx, ns, "e\xff"))

	event := func(generation uint64, action string, subject limiter.Ref, detail string) limiter.AuditEvent {
		return limiter.AuditEvent{ID: limiter.AuditID(now, generation), Time: now, Action: action, Subject: subject, Generation: generation, Detail: detail}
	}
	for ref, want := range map[limiter.Ref][]limiter.AuditEvent{
		entity: {
			event(8, "entity.delete", entity, "the entity and 1 limits"),
			event(2, "limits.put", limits, "l 5/day"),
			event(1, "entity.put", entity, `name "n", parent "org", cascade true, metadata of 0`),
		},
		system:                        {event(3, "limits.put", system, "rpm 60/minute, tpm unlimited, on_unavailable deny")},
		resource:                      {event(6, "limits.delete", resource, ""), event(5, "limits.put", resource, "l 6/day")},
		limiter.EntityRef("nobody"):   nil,
		limiter.ResourceLimitsRef(""): nil,
	} {
		if diff := cmp.Diff(want, eventsOf(t, s, ns, ref), cmpopts.IgnoreFields(limiter.AuditEvent{}, "Before", "After"), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("events of %+v (-want +got):\n%s", ref, diff)
		}
	}
	if stored.Version != 1 {
		t.Errorf("version %d, want 1", stored.Version)
	}
	must(s.Close(ctx))
	if _, err := s.ListEvents(ctx, ns, limiter.AuditOf(entity), limiter.Page{}); !errors.Is(err, limiter.ErrClosed) {
		t.Errorf("after Close: %v, want ErrClosed", err)
	}
}

// A change whose commit fails is not made and has no event.
func TestAChangeAndItsEventAreOne(t *testing.T) {
	l := newNode(t)
	for _, tt := range []struct{ err, want error }{{datafile.ErrFull, limiter.ErrUnavailable}, {datafile.ErrUncertain, limiter.ErrUncertain}} {
		ended := make(chan error)
		go func() {
			_, err := l.store.PutEntity(context.Background(), t0, "default", limiter.Entity{ID: "e"})
			ended <- err
		}()
		n := (*batch)(nil)
		for n == nil {
			n = l.disk.take()
		}
		l.disk.collect(n)
		l.disk.conclude(n, tt.err)
		close(n.done)
		if err := <-ended; !errors.Is(err, tt.want) {
			t.Errorf("got %v, want %v", err, tt.want)
		}
		var records [1]limiter.Record
		generation, err := l.store.Read(t.Context(), "default", []limiter.Ref{limiter.EntityRef("e")}, records[:])
		if err != nil || generation != 0 || !records[0].Empty() {
			t.Errorf("after a change that failed: %+v, generation %d, %v", records[0], generation, err)
		}
		if got := eventsOf(t, l.store, "default", limiter.EntityRef("e")); len(got) != 0 {
			t.Errorf("after a change that failed: events %+v", got)
		}
	}
}

// Generations never decrease, also across crashes.
func TestGenerationsOutliveACrash(t *testing.T) {
	l := newNode(t)
	var last uint64
	for i := range 3 {
		go l.disk.run()
		for _, change := range []func() error{
			func() error { return l.store.RaiseGeneration(t.Context()) },
			func() error { return l.store.DeleteEntity(t.Context(), "default", fmt.Sprint("e", i)) },
		} {
			if err := change(); err != nil {
				t.Fatal(err)
			}
			got, err := l.store.Read(t.Context(), "default", nil, nil)
			if err != nil || got != last+1 {
				t.Errorf("run %d: generation %d, %v; want %d", i, got, err, last+1)
			}
			last = got
		}
		mustClose(t, l.disk)
		l.kill(0)
	}
}

func TestOldEventsAreSwept(t *testing.T) {
	l := newNode(t)
	begin := l.now
	changes := make([]change, 0, 100*2*3)
	for i := range 100 {
		for _, ns := range []string{"a", "default"} {
			e := edit{namespace: ns, generation: uint64(i + 1)}
			e.audit(limiter.ActionPutLimits, limiter.SystemLimitsRef(), "")
			changes = append(changes, e.changes(begin.Add(time.Duration(i)*24*time.Hour))...)
		}
	}
	l.disk.ask(changes...)
	l.write()
	for l.disk.sweepRows(begin.Add(99*24*time.Hour)) != nil {
		l.write()
	}
	for _, ns := range []string{"a", "default"} {
		got := eventsOf(t, l.store, ns, limiter.SystemLimitsRef())
		if len(got) != 91 || got[90].Generation != 10 {
			t.Errorf("namespace %s: %d events from generation %d on, want 91 from 10", ns, len(got), got[0].Generation)
		}
	}
}

// A page reads at most auditScan events, and the next one goes on.
func TestAPageOfEventsIsBounded(t *testing.T) {
	l := newNode(t)
	changes := make([]change, 0, 3*(auditScan+10))
	for i := range auditScan + 10 {
		e := edit{namespace: "default", generation: uint64(i + 1), by: limiter.WithPrincipal(t.Context(), "others")}
		if i == 0 {
			e.by = limiter.WithPrincipal(t.Context(), "first")
		}
		e.audit(limiter.ActionPutLimits, limiter.SystemLimitsRef(), "")
		changes = append(changes, e.changes(l.now)...)
	}
	l.disk.ask(changes...)
	l.write()
	f := limiter.AuditFilter{Principal: "first"}
	page, err := l.store.ListEvents(t.Context(), "default", f, limiter.Page{Size: 5})
	if err != nil || len(page.Items) != 0 || page.Next == "" {
		t.Fatalf("%d events, next %q, %v; want a cursor alone", len(page.Items), page.Next, err)
	}
	page, err = l.store.ListEvents(t.Context(), "default", f, limiter.Page{Size: 5, After: page.Next})
	if err != nil || len(page.Items) != 1 || page.Next != "" {
		t.Errorf("the next page has %d events, next %q, %v; want the first event of all", len(page.Items), page.Next, err)
	}
}
