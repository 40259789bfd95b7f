package storetest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// purgeChecks are about limiter.Purger.
func purgeChecks() []controlCheck {
	return []controlCheck{
		{name: "purge/everything goes", run: checkPurge},
		{name: "purge/of an active namespace", run: checkPurgeRefused},
		{name: "purge/broken off", run: checkPurgeResumed},
		{name: "purge/beside another", run: checkPurgesAtOnce},
		{name: "purge/open reservations", run: checkPurgeOfReservations},
		{name: "purge/orphans", run: checkNoOrphans},
	}
}

// purge purges a namespace, and returns the number of deleted records.
func (o operator) purge(name string) (deleted int) {
	o.Helper()
	err := o.store.Purge(o.Context(), at(7), name, func(n int) {
		if n <= deleted {
			o.Errorf("progress of %d after %d", n, deleted)
		}
		deleted = n
	})
	if err != nil {
		o.Fatalf("Purge of %q: %v", name, err)
	}
	o.wantNamespace(name, limiter.NamespacePurged)
	return deleted
}

// fill puts records into a namespace, and uses a bucket of each entity. It returns the number of
// records and buckets.
func (o operator) fill(name string, entities int) int {
	o.Helper()
	limit := limiter.PerDay("l", 10)
	o.putLimits(name, limiter.ResourceLimitsRef("r"), limit)
	o.putLimits(name, limiter.SystemLimitsRef(), limit)
	for i := range entities {
		id := fmt.Sprintf("e/%d\xff", i)
		o.putEntity(name, limiter.Entity{ID: id, Parent: "org"})
		o.putLimits(name, limiter.EntityLimitsRef(id, "r"), limit)
		op := o.one(id, limit, limiter.Spend{Take: tokens(4)})
		op.Bucket.Namespace = name
		o.want(true, 0, op)
	}
	return 1 + 3*entities
}

// wantNothing requires that a namespace has no records, and buckets without use.
func (o operator) wantNothing(name string, entities int) {
	o.Helper()
	found, err := o.store.ListEntities(o.Context(), name, limiter.EntityFilter{}, limiter.Page{})
	limits, failed := o.store.ListLimits(o.Context(), name, limiter.LimitsFilter{}, limiter.Page{})
	if err := errors.Join(err, failed); err != nil || len(found.Items)+len(limits.Items) > 0 {
		o.Errorf("left in namespace %q: %+v, %+v, %v", name, found, limits, err)
	}
	events, err := o.store.ListEvents(o.Context(), name, limiter.AuditFilter{}, limiter.Page{})
	if err != nil {
		o.Fatalf("ListEvents: %v", err)
	}
	for _, e := range events.Items {
		if !limiter.AboutNamespace(e.Action) {
			o.Errorf("left in namespace %q: event %+v", name, e)
		}
	}
	for i := range entities {
		id := fmt.Sprintf("e/%d\xff", i)
		events, err := o.store.ListEvents(o.Context(), name, limiter.AuditOf(limiter.EntityRef(id)), limiter.Page{})
		if err != nil || len(events.Items) > 0 {
			o.Errorf("left of entity %q: events %+v, %v", id, events, err)
		}
		op := o.one(id, limiter.PerDay("l", 10), limiter.Spend{})
		op.Bucket.Namespace = name
		o.wantBalance(tokens(10), 0, op)
	}
}

// checkPurge: a purge deletes everything in a namespace, and nothing of another. It keeps its name,
// its ID, its own events, marks of settlements, whether it is disabled, and its generation.
func checkPurge(t T, s ControlStore) {
	o := newOperator(t, s)
	const entities = 7
	records := o.fill("ns", entities)
	others := o.fill("other", entities)
	o.flip(limiter.SystemLimitsRef(), limiter.Disable)
	mark := limiter.Mark{Namespace: "ns", ID: "settled", Owner: "a", Expires: at(3_600_000)}
	if won, err := s.Settle(t.Context(), at(0), mark); err != nil || !won {
		t.Fatalf("Settle: %t, %v", won, err)
	}
	before, err := s.GetNamespace(t.Context(), "ns")
	if err != nil {
		t.Fatal(err)
	}
	o.move("ns", limiter.DeleteNamespace)
	_, generation := o.readAt("ns")
	if deleted := o.purge("ns"); deleted < records {
		t.Errorf("%d records deleted, want %d at least", deleted, records)
	}
	if deleted := o.purge("ns"); deleted >= records {
		t.Errorf("%d records deleted of a namespace that was purged", deleted)
	}
	if done := o.move("ns", limiter.CreateNamespace); !done.Changed {
		t.Errorf("creation of a purged namespace: %+v", done)
	}
	after, err := s.GetNamespace(t.Context(), "ns")
	if err != nil || after.ID != before.ID || !after.CreatedAt.Equal(before.CreatedAt) || !after.Disabled {
		t.Errorf("created again it is %+v, %v; want the id and the switch of %+v", after, err, before)
	}
	if _, now := o.readAt("ns"); now <= generation {
		t.Errorf("generation %d after a purge, and %d before", now, generation)
	}
	o.wantNothing("ns", entities)
	mark.Owner = "b"
	if won, err := s.Settle(t.Context(), at(0), mark); err != nil || won {
		t.Errorf("a reservation was settled once more: %t, %v", won, err)
	}
	op := o.one("e/0\xff", limiter.PerDay("l", 10), limiter.Spend{})
	op.Bucket.Namespace = "other"
	o.wantBalance(tokens(6), 0, op)
	o.move("other", limiter.DeleteNamespace)
	if deleted := o.purge("other"); deleted < others {
		t.Errorf("%d records deleted of the other namespace, want %d at least", deleted, others)
	}
}

// checkPurgeRefused: an active namespace is not purged.
func checkPurgeRefused(t T, s ControlStore) {
	o := newOperator(t, s)
	o.fill("ns", 2)
	for range 2 {
		if err := s.Purge(t.Context(), at(7), "ns", nil); !errors.Is(err, limiter.ErrState) {
			t.Errorf("Purge of an active namespace: error %v, want %v", err, limiter.ErrState)
		}
		o.move("ns", limiter.DeleteNamespace)
		o.move("ns", limiter.RecoverNamespace)
	}
	if page, err := s.ListEntities(t.Context(), "ns", limiter.EntityFilter{}, limiter.Page{}); err != nil || len(page.Items) != 2 {
		t.Errorf("entities %+v, %v; want both", page, err)
	}
}

// checkPurgeResumed: after a purge that ends at any point a namespace can only be purged further,
// and the next purge continues.
func checkPurgeResumed(t T, s ControlStore) {
	o := newOperator(t, s)
	const entities = 9
	o.fill("ns", entities)
	o.move("ns", limiter.DeleteNamespace)
	broken := 0
	for purged := false; !purged; broken++ {
		ctx, stop := context.WithCancel(t.Context())
		err := s.Purge(ctx, at(7), "ns", func(int) { stop() })
		stop()
		ns, failed := s.GetNamespace(t.Context(), "ns")
		if failed != nil || broken > 1000 {
			t.Fatalf("after %d purges: %+v, %v", broken, ns, failed)
		}
		purged = err == nil
		switch {
		case purged && ns.State != limiter.NamespacePurged, !purged && ns.State != limiter.NamespacePurging && ns.State != limiter.NamespacePurged:
			t.Fatalf("Purge: error %v, and the namespace is %s", err, ns.State)
		case purged:
		case !errors.Is(err, context.Canceled):
			t.Fatalf("Purge: error %v, want %v", err, context.Canceled)
		}
		if ns.State != limiter.NamespacePurging {
			continue
		}
		for _, by := range []limiter.Switch{limiter.CreateNamespace, limiter.DeleteNamespace, limiter.RecoverNamespace} {
			if _, err := s.Edit(t.Context(), at(7), "ns", limiter.Edit{Ref: limiter.SystemLimitsRef(), Switch: by}); !errors.Is(err, limiter.ErrState) {
				t.Errorf("switch %d during a purge: error %v, want %v", by, err, limiter.ErrState)
			}
		}
	}
	if broken < 2 {
		t.Errorf("no purge was broken off")
	}
	o.move("ns", limiter.CreateNamespace)
	o.wantNothing("ns", entities)
}

// checkPurgesAtOnce: concurrent purges of several processes delete nothing that is stored after the
// namespace was created again.
func checkPurgesAtOnce(t T, s ControlStore) {
	o := newOperator(t, s)
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute) // three processes purge without a pause
	defer stop()
	o.move("ns", limiter.CreateNamespace)
	over, done := context.WithCancel(ctx)
	var g errgroup.Group
	for range 3 {
		g.Go(func() error {
			for over.Err() == nil {
				err := s.Purge(over, at(7), "ns", nil)
				if err != nil && !errors.Is(err, limiter.ErrState) && over.Err() == nil {
					return err
				}
			}
			return nil
		})
	}
	for round := range 5 {
		o.fill("ns", 1)
		got, err := s.ListEntities(ctx, "ns", limiter.EntityFilter{}, limiter.Page{})
		if err != nil || len(got.Items) != 1 || o.read("ns", limiter.ResourceLimitsRef("r"))[0].Empty() {
			t.Errorf("round %d: %+v, %v; want the new record", round, got, err)
		}
		o.move("ns", limiter.DeleteNamespace)
		for created := false; !created; {
			_, err := s.Edit(ctx, at(7), "ns", limiter.Edit{Ref: limiter.SystemLimitsRef(), Switch: limiter.CreateNamespace})
			created = err == nil
			if !created && !errors.Is(err, limiter.ErrState) {
				t.Fatalf("creation: %v", err)
			}
		}
	}
	done()
	if err := g.Wait(); err != nil {
		t.Errorf("Purge: %v", err)
	}
}

// checkNoOrphans: the store makes no orphans, and an unknown ID is none.
func checkNoOrphans(t T, s ControlStore) {
	o := newOperator(t, s)
	for _, name := range []string{"a/b", "k\xff", "plain"} {
		o.fill(name, 1)
		o.move(name, limiter.DeleteNamespace)
	}
	o.purge("plain")
	page, err := s.ListOrphans(t.Context(), limiter.Page{})
	if err != nil || len(page.Items) > 0 || page.Next != "" {
		t.Errorf("ListOrphans: %+v, %v", page, err)
	}
	for _, id := range []string{"", "plain", "AAAAAAAAAAA", "../\xff"} {
		if err := s.PurgeOrphan(t.Context(), id, nil); !errors.Is(err, limiter.ErrNotFound) {
			t.Errorf("PurgeOrphan of %q: error %v, want %v", id, err, limiter.ErrNotFound)
		}
	}
}

// checkPurgeOfReservations: a reservation is settled while its namespace is deleted. If it is
// settled after a purge it changes no new bucket, and does not restore its limits.
func checkPurgeOfReservations(t T, s ControlStore) {
	o := newOperator(t, s)
	l, err := limiter.New(limiter.Config{Store: s, CacheTTL: -1, Timeout: reach})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for range 9 { // holdings have a greater generation than a new count would reach
		o.putLimits("ns", limiter.SystemLimitsRef(), limiter.PerDay("l", 10))
	}
	reserve := func(amount int64) []limiter.Holding {
		var d limiter.Decision
		req := limiter.Request{Namespace: "ns", Takes: asking("e", tokens(amount)).Takes}
		if err := l.Decide(t.Context(), at(0), &req, &d); err != nil || !d.Admitted {
			t.Fatalf("Decide: %+v, %v", d, err)
		}
		return d.Holdings(nil, &req, 0)
	}
	settle := func(id string, held []limiter.Holding, used int64) {
		m := limiter.Mark{Namespace: "ns", ID: id, Owner: "a", Expires: at(3_600_000)}
		if won, err := l.Settle(t.Context(), at(0), m, held, []limiter.Consumption{{Limit: "l", Amount: tokens(used)}}); err != nil || !won {
			t.Fatalf("Settle: %t, %v", won, err)
		}
	}
	balance := func(want, capacity int64) {
		t.Helper()
		op := o.one("e", limiter.PerDay("l", capacity), limiter.Spend{})
		op.Bucket.Namespace = "ns"
		_, op.Generation = o.readAt("ns")
		o.wantBalance(tokens(want), 0, op)
	}
	first, second := reserve(4), reserve(3)
	o.move("ns", limiter.DeleteNamespace)
	settle("first", first, 6)
	balance(1, 10)
	o.purge("ns")
	o.move("ns", limiter.CreateNamespace)
	settle("second", second, 1)
	o.putLimits("ns", limiter.SystemLimitsRef(), limiter.PerDay("l", 20))
	balance(20, 20)
}
