package embedded

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// stores are those that an administrator meets, each new.
func stores(t *testing.T) map[string]*Store {
	t.Helper()
	return map[string]*Store{"in memory": newStore(t, Config{}), "with a file": openTest(t, t.TempDir(), Config{})}
}

// Everything of the namespace goes, from memory and from the file, and nothing of another.
func TestPurge(t *testing.T) {
	for name, s := range stores(t) {
		ctx := t.Context()
		limits := limitsOf(t, limiter.PerDay("l", 10))
		now := time.Now()
		for _, ns := range []string{"gone", "kept"} {
			for i := range 20 {
				op := opOf(fmt.Sprint("e", i), limits, 10)
				op.Bucket.Namespace = ns
				mustTake(t, s, now, true, op)
				if _, err := s.PutEntity(ctx, now, ns, limiter.Entity{ID: fmt.Sprint("e", i)}); err != nil {
					t.Fatal(err)
				}
			}
		}
		if _, err := s.Edit(ctx, now, "gone", limiter.Edit{Ref: limiter.SystemLimitsRef(), Switch: limiter.DeleteNamespace}); err != nil {
			t.Fatal(err)
		}
		var deleted []int
		if err := s.Purge(ctx, now, "gone", func(n int) { deleted = append(deleted, n) }); err != nil {
			t.Fatal(err)
		}
		least := 40 // buckets and entities
		if s.disk != nil {
			least += 20*3 + 20 // rows of usage, and events
		}
		if len(deleted) == 0 || deleted[len(deleted)-1] < least {
			t.Errorf("%s: deleted %v, want at least %d in the end", name, deleted, least)
		}
		for ns, want := range map[string]bool{"gone": true, "kept": false} {
			op := opOf("e1", limits, 10)
			op.Bucket.Namespace = ns
			mustTake(t, s, now, want, op)
			var records [1]limiter.Record
			if _, err := s.Read(ctx, ns, []limiter.Ref{limiter.EntityRef("e1")}, records[:]); err != nil || records[0].Empty() != want {
				t.Errorf("%s: entity of %s: %+v, %v", name, ns, records[0], err)
			}
		}
		if s.disk == nil {
			continue
		}
		for ns, want := range map[string]map[string]int64{"gone": {"l": 10_000}, "kept": {"l": 10_000}} {
			got := usageOf(t, s, ns, "e1", "r", limiter.UsageMonth, now) // of namespace gone what was taken since
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: usage of %s (-want +got):\n%s", name, ns, diff)
			}
		}
		events := eventsOf(t, s, "gone", limiter.SystemLimitsRef())
		if len(events) != 3 || events[0].Action != limiter.ActionPurgedNamespace || events[1].Action != limiter.ActionPurgeNamespace {
			t.Errorf("%s: events %+v, want the deletion, and the purge's begin and end", name, events)
		}
		if got := eventsOf(t, s, "gone", limiter.EntityRef("e1")); len(got) != 0 {
			t.Errorf("%s: events %+v of what was purged", name, got)
		}
		if diff := cmp.Diff([]string{"gone", "kept"}, collect(t, s.Namespaces(ctx))); diff != "" {
			t.Errorf("%s: namespaces (-want +got):\n%s", name, diff)
		}
	}
}
