package storetest

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// entityChecks are about stored entities.
func entityChecks() []check {
	return []check{
		{name: "entity/stored as given", run: checkEntityStored},
		{name: "entity/versions", run: checkEntityVersions},
		{name: "entity/one of many writers wins", run: checkEntityRace},
		{name: "entity/cycles", run: checkCycles},
		{name: "entity/levels", run: checkLevels},
		{name: "entity/delete", run: checkDeleteEntity},
		{name: "entity/buckets outlive it", run: checkBucketsOutlive},
		{name: "entity/memory is not shared", run: checkEntityMemory},
	}
}

// checkEntityStored: PutEntity returns and Read reads the entity that was put, with a version and
// the time of creation, which stays.
func checkEntityStored(t T, s limiter.Store) {
	c := newClient(t, s)
	put := limiter.Entity{
		ID: "key/1", Name: "Key \x00 №1", Parent: "org", Cascade: true,
		Metadata: map[string]string{"": "empty", "k\xff": "v\n"}, CreatedAt: at(-99_000),
	}
	want := put
	want.CreatedAt = at(5)
	var stored limiter.Entity
	for round := range 3 {
		put.Version = stored.Version
		put.Cascade = round%2 == 0
		var err error
		stored, err = s.PutEntity(t.Context(), at(int64(5+round)), "ns", put)
		if err != nil {
			t.Fatalf("PutEntity: %v", err)
		}
		want.Cascade, want.Version = put.Cascade, stored.Version
		if diff := cmp.Diff(want, stored); diff != "" || stored.Version == put.Version {
			t.Errorf("round %d: version %d → %d; as returned (-want +got):\n%s", round, put.Version, stored.Version, diff)
		}
		if diff := cmp.Diff(&want, c.read("ns", limiter.EntityRef("key/1"))[0].Entity); diff != "" {
			t.Errorf("round %d: as read (-want +got):\n%s", round, diff)
		}
	}
	if got := c.read("ns", limiter.EntityRef("org"))[0]; !got.Empty() {
		t.Errorf("the parent exists, but was not created: %+v", got.Entity)
	}
}

// wantPut requires an error of PutEntity, and that it applied nothing.
func (c client) wantPut(want error, e limiter.Entity) {
	c.Helper()
	before, generation := c.readAt("ns", limiter.EntityRef(e.ID))
	if _, err := c.store.PutEntity(c.Context(), at(0), "ns", e); !errors.Is(err, want) {
		c.Errorf("PutEntity of %+v: error = %v, want %q", e, err, want)
	}
	after, now := c.readAt("ns", limiter.EntityRef(e.ID))
	if diff := cmp.Diff(before[0].Entity, after[0].Entity); diff != "" || generation != now {
		c.Errorf("a refused PutEntity raised the generation from %d to %d, or changed the entity (-before +after):\n%s", generation, now, diff)
	}
}

// checkEntityVersions: only a caller that has read the current entity may replace it.
func checkEntityVersions(t T, s limiter.Store) {
	c := newClient(t, s)
	c.wantPut(limiter.ErrInvalid, limiter.Entity{})
	c.wantPut(limiter.ErrConflict, limiter.Entity{ID: "e", Version: 1})
	first := c.putEntity("ns", limiter.Entity{ID: "e", Name: "first"})
	c.wantPut(limiter.ErrConflict, limiter.Entity{ID: "e", Name: "created again"})
	second := c.putEntity("ns", limiter.Entity{ID: "e", Name: "second", Version: first.Version})
	c.wantPut(limiter.ErrConflict, limiter.Entity{ID: "e", Name: "late", Version: first.Version})
	c.wantPut(limiter.ErrConflict, limiter.Entity{ID: "e", Name: "early", Version: second.Version + 1})
	c.putEntity("other", limiter.Entity{ID: "e", Name: "of another namespace"})
	if got := c.read("ns", limiter.EntityRef("e"))[0].Entity; got == nil || got.Name != "second" {
		t.Errorf("stored is %+v, want the second", got)
	}
}

// checkEntityRace: of 64 writers with the same version one wins.
func checkEntityRace(t T, s limiter.Store) {
	c := newClient(t, s)
	ctx, cancel := within(t)
	defer cancel()
	e := limiter.Entity{ID: "e"}
	for round := range 5 {
		var won atomic.Int64
		var winner atomic.Pointer[limiter.Entity]
		var g errgroup.Group
		for caller := range callers {
			g.Go(func() error {
				mine := e
				mine.Name = fmt.Sprint("writer ", caller)
				stored, err := s.PutEntity(ctx, at(0), "ns", mine)
				if errors.Is(err, limiter.ErrConflict) {
					return nil
				}
				won.Add(1)
				winner.Store(&stored)
				return err
			})
		}
		if err := g.Wait(); err != nil || won.Load() != 1 {
			t.Fatalf("round %d: %d writers won, error %v; want 1", round, won.Load(), err)
		}
		e = *winner.Load()
		if diff := cmp.Diff(&e, c.read("ns", limiter.EntityRef("e"))[0].Entity); diff != "" {
			t.Fatalf("round %d: the winner's and the stored entity (-returned +stored):\n%s", round, diff)
		}
	}
}

// ids returns n IDs with a prefix.
func ids(prefix string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprint(prefix, i)
	}
	return all
}

// putChain stores entities, each the parent of the one before.
func (c client) putChain(chain []string) {
	c.Helper()
	for i := range chain {
		e := limiter.Entity{ID: chain[i]}
		if i+1 < len(chain) {
			e.Parent = chain[i+1]
		}
		c.putEntity("ns", e)
	}
}

// checkCycles: no entity becomes its own ancestor, at any distance. This includes a last link by an
// entity that its children named before it was created.
func checkCycles(t T, s limiter.Store) {
	c := newClient(t, s)
	for length := 1; length <= limiter.MaxLevels; length++ {
		ring := ids(fmt.Sprint("ring", length, "-"), length)
		last := ring[length-1]
		for i := range length - 1 {
			c.putEntity("ns", limiter.Entity{ID: ring[i], Parent: ring[i+1]})
		}
		c.wantPut(limiter.ErrInvalid, limiter.Entity{ID: last, Parent: ring[0]})
		stored := c.putEntity("ns", limiter.Entity{ID: last})
		stored.Parent = ring[0]
		c.wantPut(limiter.ErrInvalid, stored)
	}
}

// checkLevels: a chain of MaxLevels is legal, one more is not.
func checkLevels(t T, s limiter.Store) {
	c := newClient(t, s)
	chain := ids("level", limiter.MaxLevels)
	c.putChain(chain)
	c.wantPut(limiter.ErrInvalid, limiter.Entity{ID: "below", Parent: chain[0]})
	below := c.putEntity("ns", limiter.Entity{ID: "below", Parent: chain[1]})
	below.Parent = chain[0]
	c.wantPut(limiter.ErrInvalid, below)
	c.putEntity("another", limiter.Entity{ID: "below", Parent: chain[0]}) // there the parent was never created
}

// checkDeleteEntity: a deletion deletes an entity, its limits and nothing else, and the entity may
// be created again. One that does not exist may be deleted.
func checkDeleteEntity(t T, s limiter.Store) {
	c := newClient(t, s)
	gone := []limiter.Ref{limiter.EntityRef("org"), limiter.EntityLimitsRef("org", "r"), limiter.EntityLimitsRef("org", limiter.DefaultResource), limiter.EntityLimitsRef("org", "")}
	kept := []limiter.Ref{
		limiter.EntityRef("key"), limiter.EntityLimitsRef("key", "r"), limiter.EntityLimitsRef("org#r", "r"), limiter.EntityLimitsRef("or", "g"),
		limiter.ResourceLimitsRef("r"), limiter.ResourceLimitsRef("org"), limiter.SystemLimitsRef(),
	}
	c.putChain([]string{"key", "org"})
	for _, ref := range append(gone[1:], kept[1:]...) {
		c.putLimits("ns", ref, limiter.PerDay("l", 1))
	}
	c.putLimits("other", gone[1], limiter.PerDay("l", 1))
	for _, id := range []string{"org", "org", "never created", ""} {
		if err := s.DeleteEntity(t.Context(), "ns", id); err != nil {
			t.Errorf("DeleteEntity of %q: %v", id, err)
		}
	}
	for i, r := range c.read("ns", gone...) {
		if !r.Empty() {
			t.Errorf("still there: %+v", gone[i])
		}
	}
	records := c.read("ns", kept...)
	for i, r := range records {
		if r.Empty() {
			t.Errorf("also deleted: %+v", kept[i])
		}
	}
	if child := records[0].Entity; child != nil && child.Parent != "org" {
		t.Errorf("the child's parent is %q, want it unchanged", child.Parent)
	}
	if c.read("other", gone[1])[0].Empty() {
		t.Errorf("deleted in another namespace")
	}
	c.putEntity("ns", limiter.Entity{ID: "org"})
}

// checkBucketsOutlive: deleting and creating an entity does not fill its buckets.
func checkBucketsOutlive(t T, s limiter.Store) {
	c := newClient(t, s)
	op := c.one("user", limiter.PerDay("l", 5), limiter.Spend{Take: tokens(5)})
	op.Bucket.Namespace = "ns"
	c.putEntity("ns", limiter.Entity{ID: "user"})
	c.want(true, 0, op)
	if err := s.DeleteEntity(t.Context(), "ns", "user"); err != nil {
		t.Fatalf("DeleteEntity: %v", err)
	}
	c.want(false, 0, op)
	c.putEntity("ns", limiter.Entity{ID: "user"})
	c.want(false, 0, op)
}

// checkEntityMemory: later changes by the caller to the entity that it put, or got back, do not
// change the stored one.
func checkEntityMemory(t T, s limiter.Store) {
	c := newClient(t, s)
	put := limiter.Entity{ID: "e", Metadata: map[string]string{"tier": "gold"}}
	got := c.putEntity("ns", put)
	put.Metadata["tier"] = "changed in the entity that was put"
	put.Metadata["added"] = "x"
	if got.Metadata["tier"] == "gold" {
		got.Metadata["tier"] = "changed in the returned entity"
	}
	want := map[string]string{"tier": "gold"}
	records := c.read("ns", limiter.EntityRef("e"))
	if records[0].Entity == nil {
		t.Fatalf("the entity is not there")
	}
	if diff := cmp.Diff(want, records[0].Entity.Metadata); diff != "" {
		t.Errorf("stored metadata (-want +got):\n%s", diff)
	}
}
