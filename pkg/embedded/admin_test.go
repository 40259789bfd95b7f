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

func TestChildrenAndCustomLimits(t *testing.T) {
	for name, s := range stores(t) {
		ctx := t.Context()
		rpm := limiter.Record{Limits: limitsOf(t, limiter.PerMinute("rpm", 1))}
		for _, e := range []limiter.Entity{{ID: "b", Parent: "org"}, {ID: "a\xff", Parent: "org"}, {ID: "c", Parent: "org/"}, {ID: "d"}} {
			if _, err := s.PutEntity(ctx, t0, "default", e); err != nil {
				t.Fatal(err)
			}
			if err := s.PutLimits(ctx, "default", limiter.EntityLimitsRef(e.ID, "gpt-4"), rpm); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.PutEntity(ctx, t0, "other", limiter.Entity{ID: "x", Parent: "org"}); err != nil {
			t.Fatal(err)
		}
		if err := s.DeleteEntity(ctx, "default", "d"); err != nil {
			t.Fatal(err)
		}
		for _, tt := range []struct {
			what string
			got  []string
			want []string
		}{
			{"children", collect(t, s.Children(ctx, "default", "org")), []string{"a\xff", "b"}},
			{"children of none", collect(t, s.Children(ctx, "default", "")), nil},
			{"of another namespace", collect(t, s.Children(ctx, "other", "org")), []string{"x"}},
			{"with limits", collect(t, s.ListLimits(ctx, "default", "gpt-4")), []string{"a\xff", "b", "c"}},
			{"with limits for everything", collect(t, s.ListLimits(ctx, "default", limiter.DefaultResource)), nil},
			{"namespaces", collect(t, s.Namespaces(ctx)), []string{"default", "other"}},
		} {
			if diff := cmp.Diff(tt.want, tt.got); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", name, tt.what, diff)
			}
		}
	}
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
		var deleted []int
		if err := s.Purge(ctx, "gone", func(n int) { deleted = append(deleted, n) }); err != nil {
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
			got, err := s.Usage(ctx, ns, "e1", "r", Month, now) // of namespace gone what was taken since
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("%s: usage of %s: %v (-want +got):\n%s", name, ns, err, diff)
			}
		}
		events := collect(t, s.AuditEvents(ctx, "gone", limiter.SystemLimitsRef()))
		if len(events) != 2 || events[0].Detail != "begun" || events[1].Detail != "ended" || events[0].Action != limiter.ActionPurgeNamespace {
			t.Errorf("%s: events %+v, want the purge's begin and end", name, events)
		}
		if got := collect(t, s.AuditEvents(ctx, "gone", limiter.EntityRef("e1"))); len(got) != 0 {
			t.Errorf("%s: events %+v of what was purged", name, got)
		}
		if diff := cmp.Diff([]string{"gone", "kept"}, collect(t, s.Namespaces(ctx))); diff != "" {
			t.Errorf("%s: namespaces (-want +got):\n%s", name, diff)
		}
	}
}
