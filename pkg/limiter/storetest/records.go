package storetest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// recordChecks are about stored limits, and about reading.
func recordChecks() []check {
	return []check{
		{name: "records/limits", run: checkLimitsStored},
		{name: "records/policy", run: checkPolicyStored},
		{name: "records/reading overwrites", run: checkReadOverwrites},
		{name: "records/generation", run: checkGeneration},
		{name: "records/generation while they change", run: checkGenerationRule},
		{name: "records/subscriber", needs: func(can limiter.BackendCapabilities) bool { return !can.Local }, run: checkSubscriber},
	}
}

// checkLimitsStored: limits are put, replaced and deleted, of entities that were
// never created too; an entity is not put as limits.
func checkLimitsStored(t T, s limiter.Store) {
	c := newClient(t, s)
	refs := []limiter.Ref{
		limiter.EntityLimitsRef("never created", "r"), limiter.EntityLimitsRef("never created", limiter.DefaultResource),
		limiter.ResourceLimitsRef("r"), limiter.SystemLimitsRef(),
	}
	for i, ref := range refs {
		c.putLimits("ns", ref, limiter.PerDay("a", 1), limiter.PerDay("b", 2))
		c.putLimits("ns", ref, limiter.PerMinute("b", int64(i+1)).WithBurst(7).WithMaxDebt(3), limiter.Unlimited("c"))
	}
	alone := limiter.Record{Limits: c.limits(limiter.PerDay("l", 1)), Alone: true}
	for _, ref := range append(refs[:3:3], limiter.ResourceLimitsRef("alone")) {
		if err := s.PutLimits(t.Context(), "alone", ref, alone); err != nil || !c.read("alone", ref)[0].Equal(alone) {
			t.Errorf("%+v: %v; got %+v, want limits that stand alone", ref, err, c.read("alone", ref)[0])
		}
	}
	if err := s.PutLimits(t.Context(), "alone", limiter.SystemLimitsRef(), alone); !errors.Is(err, limiter.ErrInvalid) {
		t.Errorf("limits of the system that stand alone: error = %v, want %q", err, limiter.ErrInvalid)
	}
	for i, r := range c.read("ns", refs...) {
		want := c.limits(limiter.PerMinute("b", int64(i+1)).WithBurst(7).WithMaxDebt(3), limiter.Unlimited("c"))
		if r.Limits.Hash() != want.Hash() || r.Entity != nil {
			t.Errorf("%+v: %d limits, first or second put, want the second", refs[i], r.Limits.Len())
		}
	}
	for i, ref := range refs {
		empty := limiter.Record{}
		if i%2 == 0 {
			empty.Limits = c.limits() // an empty set of limits is the same as none
		}
		for range 2 {
			if err := s.PutLimits(t.Context(), "ns", ref, empty); err != nil {
				t.Errorf("deleting %+v: %v", ref, err)
			}
		}
		for j, r := range c.read("ns", refs...) {
			if r.Empty() != (j <= i) {
				t.Errorf("after deleting %+v: %+v is deleted = %t", ref, refs[j], r.Empty())
			}
		}
	}
	for _, r := range []limiter.Record{{}, {Limits: c.limits(limiter.PerDay("l", 1))}, {Entity: &limiter.Entity{ID: "e"}}} {
		if err := s.PutLimits(t.Context(), "ns", limiter.EntityRef("e"), r); !errors.Is(err, limiter.ErrInvalid) {
			t.Errorf("PutLimits of an entity: error = %v, want %q", err, limiter.ErrInvalid)
		}
	}
	if !c.read("ns", limiter.EntityRef("e"))[0].Empty() {
		t.Errorf("PutLimits created an entity")
	}
}

// checkPolicyStored: the system's record has a policy, with limits or without.
func checkPolicyStored(t T, s limiter.Store) {
	c := newClient(t, s)
	ref := limiter.SystemLimitsRef()
	for _, want := range []limiter.Record{
		{OnUnavailable: limiter.Deny},
		{OnUnavailable: limiter.Local, Limits: c.limits(limiter.PerDay("l", 1))},
		{Limits: c.limits(limiter.PerDay("l", 2))},
		{},
	} {
		if err := s.PutLimits(t.Context(), "ns", ref, want); err != nil {
			t.Fatalf("PutLimits: %v", err)
		}
		if got := c.read("ns", ref)[0]; got.OnUnavailable != want.OnUnavailable || got.Limits.Len() != want.Limits.Len() || got.Empty() != want.Empty() {
			t.Errorf("policy %q and %d limits, want %q and %d", got.OnUnavailable, got.Limits.Len(), want.OnUnavailable, want.Limits.Len())
		}
	}
}

// checkReadOverwrites: a read overwrites all earlier contents of the caller's records.
func checkReadOverwrites(t T, s limiter.Store) {
	c := newClient(t, s)
	stale := limiter.Record{Entity: &limiter.Entity{ID: "stale"}, Limits: c.limits(limiter.PerDay("stale", 1)), OnUnavailable: limiter.Deny}
	refs := []limiter.Ref{limiter.EntityRef("e"), limiter.ResourceLimitsRef("r"), limiter.EntityRef("e"), limiter.SystemLimitsRef()}
	for _, stored := range []bool{false, true} {
		if stored {
			c.putEntity("ns", limiter.Entity{ID: "e"})
		}
		records := []limiter.Record{stale, stale, stale, stale}
		if _, err := s.Read(t.Context(), "ns", refs, records); err != nil {
			t.Fatalf("Read: %v", err)
		}
		for i, r := range records {
			if want := stored && refs[i].Kind == limiter.RefEntity; r.Empty() == want || r.Limits != nil || r.OnUnavailable != limiter.Unset {
				t.Errorf("record %d is stored = %t, want %t, and no earlier contents", i, !r.Empty(), want)
			}
		}
	}
}

// checkGeneration: every change raises the generation of its namespace, and RaiseGeneration that of
// every namespace, also of an empty one.
func checkGeneration(t T, s limiter.Store) {
	c := newClient(t, s)
	changes := []struct {
		name string
		call func(ctx context.Context) error
	}{
		{"PutEntity", func(ctx context.Context) error {
			_, err := s.PutEntity(ctx, at(0), "ns", limiter.Entity{ID: "e"})
			return err
		}},
		{"PutLimits", func(ctx context.Context) error {
			return s.PutLimits(ctx, "ns", limiter.EntityLimitsRef("e", "r"), limiter.Record{Limits: c.limits(limiter.PerDay("l", 1))})
		}},
		{"deleting limits", func(ctx context.Context) error {
			return s.PutLimits(ctx, "ns", limiter.EntityLimitsRef("e", "r"), limiter.Record{})
		}},
		{"DeleteEntity", func(ctx context.Context) error { return s.DeleteEntity(ctx, "ns", "e") }},
		{"RaiseGeneration", s.RaiseGeneration},
	}
	_, last := c.readAt("ns")
	for _, ch := range changes {
		_, elsewhere := c.readAt("empty")
		if err := ch.call(t.Context()); err != nil {
			t.Fatalf("%s: %v", ch.name, err)
		}
		_, now := c.readAt("ns", limiter.EntityRef("e"))
		if now <= last {
			t.Errorf("%s: generation %d, and %d before", ch.name, now, last)
		}
		last = now
		if _, got := c.readAt("empty"); got < elsewhere || ch.name == "RaiseGeneration" && got == elsewhere {
			t.Errorf("%s: generation of another namespace %d, and %d before", ch.name, got, elsewhere)
		}
	}
}

// checkGenerationRule: one writer replaces limits repeatedly. Readers never see the generation of a
// change, or a later one, with limits from before it. The records of one Read are of one time.
func checkGenerationRule(t T, s limiter.Store) {
	c := newClient(t, s)
	limited, cancel := within(t)
	defer cancel()
	run := replacing{store: s, refs: []limiter.Ref{limiter.ResourceLimitsRef("first"), limiter.ResourceLimitsRef("second")}}
	sights := make([][]sight, 4)
	done := make(chan struct{})
	var started sync.WaitGroup
	started.Add(len(sights))
	g, ctx := errgroup.WithContext(limited)
	for reader := range sights {
		g.Go(func() (err error) {
			started.Done()
			sights[reader], err = run.read(ctx, done)
			return err
		})
	}
	g.Go(func() error {
		defer close(done)
		started.Wait()
		return run.write(ctx)
	})
	if err := g.Wait(); err != nil {
		t.Fatalf("a reader or the writer failed: %v", err)
	}
	for _, got := range slices.Concat(sights...) {
		if got.first != got.second && got.first != got.second+1 {
			t.Fatalf("one Read has number %d and number %d, which were never there together", got.first, got.second)
		}
		if next := got.first + 1; next <= replacements && got.generation >= run.generations[next] {
			t.Fatalf("generation %d with number %d, though number %d came at generation %d", got.generation, got.first, next, run.generations[next])
		}
	}
	if capacity(c.read("ns", run.refs[0])[0]) != replacements {
		t.Errorf("the last change is not there")
	}
}

const replacements = 50

// replacing are two records whose limits one writer replaces, by the number of the
// replacement, the first record before the second.
type replacing struct {
	store       limiter.Store
	refs        []limiter.Ref
	generations [replacements + 1]uint64 // of the change that put each number first
}

// sight is the result of one Read.
type sight struct {
	generation    uint64
	first, second int64
}

func (rp *replacing) write(ctx context.Context) error {
	for n := int64(1); n <= replacements; n++ {
		l, err := limiter.NewLimits(limiter.PerDay("l", n))
		if err != nil {
			return err
		}
		if err := rp.store.PutLimits(ctx, "ns", rp.refs[0], limiter.Record{Limits: l}); err != nil {
			return err
		}
		rp.generations[n], err = rp.store.Read(ctx, "ns", nil, nil)
		if err != nil {
			return err
		}
		if err := rp.store.PutLimits(ctx, "ns", rp.refs[1], limiter.Record{Limits: l}); err != nil {
			return err
		}
		runtime.Gosched()
	}
	return nil
}

// read reads repeatedly until done is closed.
func (rp *replacing) read(ctx context.Context, done <-chan struct{}) ([]sight, error) {
	var seen []sight
	records := make([]limiter.Record, len(rp.refs))
	for {
		generation, err := rp.store.Read(ctx, "ns", rp.refs, records)
		if err != nil {
			return nil, err
		}
		seen = append(seen, sight{generation, capacity(records[0]), capacity(records[1])})
		select {
		case <-done:
			return seen, nil
		default:
			runtime.Gosched()
		}
	}
}

// capacity returns the capacity of a record's first limit, 0 when there is none.
func capacity(r limiter.Record) int64 {
	if r.Limits.Len() == 0 {
		return 0
	}
	return r.Limits.At(0).Capacity
}

// checkSubscriber: within 5 seconds the subscriber gets every change. A later read then sees the
// change, at its generation or a later one.
func checkSubscriber(t T, s limiter.Store) {
	c := newClient(t, s)
	told := make(chan limiter.Change, 100)
	s.Subscribe(func(ch limiter.Change) { told <- ch })
	expect := func(ref limiter.Ref, stored bool) {
		t.Helper()
		timeout := time.NewTimer(reach)
		defer timeout.Stop()
		for {
			select {
			case ch := <-told:
				if !mentions(ch, "ns", ref) {
					continue
				}
				records, generation := c.readAt("ns", ref)
				if generation < ch.Generation || records[0].Empty() == stored {
					t.Errorf("subscriber got %+v at generation %d; then read generation %d, stored = %t, want %t", ref, ch.Generation, generation, !records[0].Empty(), stored)
				}
				return
			case <-timeout.C:
				t.Fatalf("subscriber got no change of %+v within %v", ref, reach)
			case <-t.Context().Done():
				t.Fatalf("subscriber got no change of %+v", ref)
			}
		}
	}
	for i := range 3 {
		ref := limiter.EntityLimitsRef(fmt.Sprint("e", i), "r")
		c.putEntity("ns", limiter.Entity{ID: ref.Entity})
		expect(limiter.EntityRef(ref.Entity), true)
		c.putLimits("ns", ref, limiter.PerDay("l", 1))
		expect(ref, true)
		if err := s.DeleteEntity(t.Context(), "ns", ref.Entity); err != nil {
			t.Fatalf("DeleteEntity: %v", err)
		}
		expect(ref, false)
		c.putLimits("ns", limiter.SystemLimitsRef(), limiter.PerDay("l", 1))
		expect(limiter.SystemLimitsRef(), true)
		if err := s.RaiseGeneration(t.Context()); err != nil {
			t.Fatalf("RaiseGeneration: %v", err)
		}
		expect(limiter.ResourceLimitsRef("anything"), false)
	}
}

// mentions reports whether a change may be of a record.
func mentions(ch limiter.Change, namespace string, ref limiter.Ref) bool {
	if ch.Namespace != namespace && ch.Namespace != "" {
		return false
	}
	return ch.Refs == nil || slices.Contains(ch.Refs, ref)
}
