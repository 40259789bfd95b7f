package embedded

import (
	"bytes"
	"context"
	"errors"
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
			got := usageOf(t, s, ns, "e1", "r", limiter.UsageMonth, now) // for namespace gone the usage since the purge
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: usage of %s (-want +got):\n%s", name, ns, diff)
			}
		}
		events := eventsOf(t, s, "gone", limiter.SystemLimitsRef())
		if len(events) != 3 || events[0].Action != limiter.ActionPurgedNamespace || events[1].Action != limiter.ActionPurgeNamespace {
			t.Errorf("%s: events %+v, want the deletion, and the purge's begin and end", name, events)
		}
		if got := eventsOf(t, s, "gone", limiter.EntityRef("e1")); len(got) != 0 {
			t.Errorf("%s: events %+v of purged records", name, got)
		}
		if diff := cmp.Diff([]string{"gone", "kept"}, collect(t, s.Namespaces(ctx))); diff != "" {
			t.Errorf("%s: namespaces (-want +got):\n%s", name, diff)
		}
	}
}

// deleteNamespace deletes namespace "n" of a store, with entities and buckets in it.
func deleteNamespace(t *testing.T, s *Store, now time.Time) {
	t.Helper()
	for i := range 5 {
		op := opOf(fmt.Sprint("e", i), limitsOf(t, limiter.PerDay("l", 10)), 10)
		op.Bucket.Namespace = "n"
		mustTake(t, s, now, true, op)
		if _, err := s.PutEntity(t.Context(), now, "n", limiter.Entity{ID: fmt.Sprint("e", i)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Edit(t.Context(), now, "n", limiter.Edit{Ref: limiter.SystemLimitsRef(), Switch: limiter.DeleteNamespace}); err != nil {
		t.Fatal(err)
	}
}

// A purge that a process ends at any point continues in the next one.
func TestPurgesOutliveRestarts(t *testing.T) {
	now, dir := time.Now(), t.TempDir()
	s := openTest(t, dir, Config{})
	deleteNamespace(t, s, now)
	for runs := 1; ; runs++ {
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		s = openTest(t, dir, Config{})
		before, err := s.GetNamespace(t.Context(), "n")
		want := limiter.NamespacePurging
		if runs == 1 {
			want = limiter.NamespaceDeleted
		}
		if err != nil || before.State != want || before.Since.IsZero() {
			t.Fatalf("in run %d: %+v, %v; want it %s", runs, before, err, want)
		}
		ctx, stop := context.WithCancel(t.Context())
		err = s.Purge(ctx, now, "n", func(int) { stop() })
		stop()
		if err == nil {
			if runs < 3 {
				t.Errorf("purged in %d runs, want more", runs)
			}
			break
		}
	}
	ns, err := s.GetNamespace(t.Context(), "n")
	if err != nil || ns.State != limiter.NamespacePurged {
		t.Errorf("in the end: %+v, %v", ns, err)
	}
	op := opOf("e1", limitsOf(t, limiter.PerDay("l", 10)), 10)
	op.Bucket.Namespace = "n"
	mustTake(t, s, now, true, op)
}

// A restore into a running store ends the purge of a namespace that it restores.
func TestARestoreEndsAPurge(t *testing.T) {
	now := time.Now()
	s := openTest(t, t.TempDir(), Config{})
	if _, err := s.PutEntity(t.Context(), now, "n", limiter.Entity{ID: "back"}); err != nil {
		t.Fatal(err)
	}
	var backup bytes.Buffer
	if _, err := s.Backup(&backup); err != nil {
		t.Fatal(err)
	}
	deleteNamespace(t, s, now)
	err := s.Purge(t.Context(), now, "n", func(deleted int) {
		if deleted == 6 { // the entities
			if err := s.Restore(t.Context(), bytes.NewReader(backup.Bytes())); err != nil {
				t.Error(err)
			}
		}
	})
	if !errors.Is(err, limiter.ErrState) {
		t.Errorf("Purge: error %v, want %v", err, limiter.ErrState)
	}
	ns, err := s.GetNamespace(t.Context(), "n")
	r, failed := s.Get(t.Context(), "n", limiter.EntityRef("back"))
	if err := errors.Join(err, failed); err != nil || ns.State != limiter.NamespaceActive || r.Entity == nil {
		t.Errorf("after the restore: %+v, %+v, %v", ns, r, err)
	}
}
