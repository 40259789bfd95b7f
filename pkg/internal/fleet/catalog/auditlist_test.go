package catalog

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
)

func sorted(list []string) []string {
	slices.Sort(list)
	return list
}

// eventsOf returns the newest events of a subject, the newest first, without their records.
func eventsOf(t *testing.T, c *Catalog, subject limiter.Ref) []limiter.AuditEvent {
	t.Helper()
	page, err := c.ListEvents(t.Context(), ns, limiter.AuditOf(subject), limiter.Page{Size: limiter.MaxPage})
	if err != nil {
		t.Fatal(err)
	}
	for i := range page.Items {
		page.Items[i].Before, page.Items[i].After = limiter.Record{}, limiter.Record{}
	}
	return page.Items
}

// children returns the IDs of the children of a parent.
func children(t *testing.T, c *Catalog, parent string) []string {
	t.Helper()
	page, err := c.ListEntities(t.Context(), ns, limiter.EntityFilter{Parent: parent}, limiter.Page{})
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]string, 0, len(page.Items))
	for _, e := range page.Items {
		ids = append(ids, e.Ref.Entity)
	}
	return sorted(ids)
}

// withLimits returns the IDs of the entities with limits for a resource.
func withLimits(t *testing.T, c *Catalog, resource string) []string {
	t.Helper()
	page, err := c.ListLimits(t.Context(), ns, limiter.LimitsFilter{Resource: resource}, limiter.Page{})
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]string, 0, len(page.Items))
	for _, stored := range page.Items {
		ids = append(ids, stored.Ref.Entity)
	}
	return sorted(ids)
}

// TestChildrenAndCustomLimits: found by index, with their full names.
func TestChildrenAndCustomLimits(t *testing.T) {
	c := newTestCatalog(t, dynamotest.Start(t).Client(t))
	kib1 := strings.Repeat("k", 1<<10)
	tooLong := strings.Repeat("l", schema.MaxNameAttribute+1)
	ids := sorted([]string{"key/1", "key#2", "k\xff", kib1, tooLong})
	want := slices.Clone(ids)
	want[slices.Index(want, tooLong)] = schema.EscapeName(tooLong)
	want = sorted(want)
	for _, id := range ids {
		if _, err := c.PutEntity(t.Context(), time.Unix(0, 0), ns, limiter.Entity{ID: id, Parent: "org/a"}); err != nil {
			t.Fatalf("PutEntity: %v", err)
		}
		putPerDay(t, c, limiter.EntityLimitsRef(id, "gpt-4"), 1)
	}
	putPerDay(t, c, limiter.EntityLimitsRef("", "gpt-4"), 1)
	for _, parent := range []string{"org", "org/a/", "org/b", ""} {
		if _, err := c.PutEntity(t.Context(), time.Unix(0, 0), ns, limiter.Entity{ID: "child of " + parent, Parent: parent}); err != nil {
			t.Fatalf("PutEntity: %v", err)
		}
	}
	if diff := cmp.Diff(want, children(t, c, "org/a")); diff != "" {
		t.Errorf("children (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(append([]string{""}, want...), withLimits(t, c, "gpt-4")); diff != "" {
		t.Errorf("entities with limits of their own (-want +got):\n%s", diff)
	}
	for _, id := range ids[:2] {
		if err := c.DeleteEntity(t.Context(), ns, id); err != nil {
			t.Fatalf("DeleteEntity: %v", err)
		}
	}
	if got := len(children(t, c, "org/a")); got != len(ids)-2 {
		t.Errorf("%d children after two of %d were deleted", got, len(ids))
	}
	if got := len(withLimits(t, c, "gpt-4")); got != len(ids)+1-2 {
		t.Errorf("%d entities with limits of their own after two of %d were deleted", got, len(ids)+1)
	}
}

func TestListsSayWhatFailed(t *testing.T) {
	db := dynamofake.New()
	c := newTestCatalog(t, db)
	read(t, c)
	db.SetPlan(func(dynamofake.Call) dynamofake.Fault {
		return dynamofake.Fault{Kind: dynamofake.Fail, Err: errors.New("broken")}
	})
	if got, err := c.ListEntities(t.Context(), ns, limiter.EntityFilter{Parent: "org"}, limiter.Page{}); err == nil || !strings.Contains(err.Error(), c.table.name) {
		t.Errorf("got %+v, error %v; want an error that names the table", got, err)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Fatalf("close: %v", err)
	}
	if _, err := c.ListLimits(t.Context(), ns, limiter.LimitsFilter{}, limiter.Page{}); !errors.Is(err, limiter.ErrClosed) {
		t.Errorf("after close: error = %v, want %q", err, limiter.ErrClosed)
	}
}

// TestAuditEvents: one for each change, under its subject, in order.
func TestAuditEvents(t *testing.T) {
	c := newTestCatalog(t, dynamotest.Start(t).Client(t))
	now := time.Date(2026, 11, 21, 2, 0, 0, 123e6, time.UTC)
	c.now = func() time.Time { return now } // of the future: nothing expires
	entity, limits, system, resource := limiter.EntityRef("$SYSTEM"), limiter.EntityLimitsRef("$SYSTEM", "k\xff"), limiter.SystemLimitsRef(), limiter.ResourceLimitsRef("gpt-4")
	stored, err := c.PutEntity(t.Context(), time.Unix(0, 0), ns, limiter.Entity{ID: "$SYSTEM", Name: "n", Parent: "org", Cascade: true})
	if err != nil {
		t.Fatalf("PutEntity: %v", err)
	}
	putPerDay(t, c, limits, 5)
	for _, ref := range []limiter.Ref{system, resource} {
		if err := c.PutLimits(t.Context(), ns, ref, limiter.Record{Limits: mustLimits(t, limiter.PerMinute("rpm", 60), limiter.Unlimited("tpm"))}); err != nil {
			t.Fatalf("PutLimits: %v", err)
		}
	}
	if _, err := c.PutEntity(t.Context(), time.Unix(0, 0), ns, limiter.Entity{ID: "$SYSTEM"}); !errors.Is(err, limiter.ErrConflict) {
		t.Fatalf("PutEntity: error = %v, want %q", err, limiter.ErrConflict)
	}
	if err := c.PutLimits(t.Context(), ns, resource, limiter.Record{}); err != nil {
		t.Fatalf("PutLimits: %v", err)
	}
	if err := c.DeleteEntity(t.Context(), ns, "$SYSTEM"); err != nil {
		t.Fatalf("DeleteEntity: %v", err)
	}
	event := func(generation uint64, action string, subject limiter.Ref, detail string) limiter.AuditEvent {
		return limiter.AuditEvent{ID: limiter.AuditID(now, generation), Time: now, Action: action, Subject: subject, Generation: generation, Detail: detail}
	}
	for ref, want := range map[limiter.Ref][]limiter.AuditEvent{
		entity: {
			event(6, "entity.delete", entity, "the entity and 1 limits"),
			event(2, "limits.put", limits, "l 5/day"),
			event(stored.Version, "entity.put", entity, `name "n", parent "org", cascade true, metadata of 0`),
		},
		system:   {event(3, "limits.put", system, "rpm 60/minute, tpm unlimited")},
		resource: {event(5, "limits.delete", resource, ""), event(4, "limits.put", resource, "rpm 60/minute, tpm unlimited")},
	} {
		if diff := cmp.Diff(want, eventsOf(t, c, ref)); diff != "" {
			t.Errorf("events of %+v (-want +got):\n%s", ref, diff)
		}
	}
}
