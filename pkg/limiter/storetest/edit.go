package storetest

import (
	"errors"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// editChecks are about limiter.Editor.
func editChecks() []controlCheck {
	return []controlCheck{
		{name: "edit/limits", run: checkEditLimits},
		{name: "edit/entity", run: checkEditEntity},
		{name: "edit/entity with limits is deleted", run: checkEditDeletes},
		{name: "edit/refused", run: checkEditRefused},
		{name: "edit/one after the other", run: checkEditsAlone},
	}
}

// wantStored requires the record of ref, and that the generation moved exactly if it changed.
func (o operator) wantStored(ref limiter.Ref, want limiter.Record, before uint64, changed bool) {
	o.Helper()
	records, now := o.readAt("ns", ref)
	if !records[0].Equal(want) {
		o.Errorf("stored is %+v, want %+v", records[0], want)
	}
	if (now > before) != changed || now < before {
		o.Errorf("generation %d, and %d before; want a greater one: %t", now, before, changed)
	}
}

// checkEditLimits: limits are created, replaced, left unchanged and deleted. The outcome has the
// records before and after. A dry run returns the same and changes nothing.
func checkEditLimits(t T, s ControlStore) {
	o := newOperator(t, s)
	first := limiter.Record{Limits: o.limits(limiter.PerDay("a", 1))}
	second := limiter.Record{Limits: o.limits(limiter.PerDay("a", 2), limiter.Unlimited("b"))}
	for _, ref := range []limiter.Ref{
		limiter.SystemLimitsRef(), limiter.ResourceLimitsRef("r"), limiter.EntityLimitsRef("e", "r"), limiter.EntityLimitsRef("e", limiter.DefaultResource),
	} {
		before := limiter.Record{}
		for _, after := range []limiter.Record{first, second, second, {}, {}} {
			changed := !after.Equal(before)
			_, generation := o.readAt("ns")
			for _, dry := range []bool{true, false} {
				done, err := s.Edit(t.Context(), at(7), "ns", limiter.Edit{Ref: ref, Change: to(after), DryRun: dry})
				if err != nil || done.Changed != changed || !done.Before.Equal(before) || !done.After.Equal(after) {
					t.Fatalf("Edit of %+v, dry = %t: %+v, %v; want changed = %t", ref, dry, done, err, changed)
				}
				if dry {
					o.wantStored(ref, before, generation, false)
				}
			}
			o.wantStored(ref, after, generation, changed)
			before = after
		}
	}
	policy := limiter.Record{OnUnavailable: limiter.Deny}
	if done := o.edit(t.Context(), limiter.SystemLimitsRef(), policy); !done.Changed || !done.After.Equal(policy) {
		t.Errorf("a policy: %+v", done)
	}
}

// checkEditEntity: an entity keeps its time of creation, and no version repeats, also not after a
// deletion.
func checkEditEntity(t T, s ControlStore) {
	o := newOperator(t, s)
	ref := limiter.EntityRef("key/\x00\xff 1")
	seen := map[uint64]bool{0: true}
	for round, put := range []limiter.Entity{
		{Name: "first", Metadata: map[string]string{"k": "v"}}, {Name: "second", Parent: "org"}, {Name: "second", Parent: "org", Cascade: true}, {}, {Name: "again"},
	} {
		if put.Name == "" {
			o.edit(t.Context(), ref, limiter.Record{})
			continue
		}
		put.ID, put.CreatedAt, put.Version = ref.Entity, at(-99_000), 77
		done := o.edit(t.Context(), ref, limiter.Record{Entity: &put})
		got := done.After.Entity
		if got == nil || seen[got.Version] || !got.CreatedAt.Equal(at(7)) {
			t.Fatalf("round %d: %+v; want a new version, created at %v", round, got, at(7))
		}
		seen[got.Version] = true
		if diff := cmp.Diff(got, o.read("ns", ref)[0].Entity); diff != "" {
			t.Errorf("round %d: returned and stored entity (-returned +stored):\n%s", round, diff)
		}
		if same := o.edit(t.Context(), ref, limiter.Record{Entity: &put}); same.Changed || same.After.Entity.Version != got.Version {
			t.Errorf("round %d: the same again: %+v", round, same)
		}
	}
}

// checkEditDeletes: a deletion of an entity deletes its limits, also if no entity was ever stored,
// and no other limits.
func checkEditDeletes(t T, s ControlStore) {
	o := newOperator(t, s)
	for _, id := range []string{"stored", "never stored", "other"} {
		for _, resource := range []string{"r", limiter.DefaultResource} {
			o.putLimits("ns", limiter.EntityLimitsRef(id, resource), limiter.PerDay("l", 1))
		}
	}
	o.putEntity("ns", limiter.Entity{ID: "stored"})
	for _, id := range []string{"stored", "never stored", "nothing"} {
		want := 2
		if id == "nothing" {
			want = 0
		}
		done, err := s.Edit(t.Context(), at(0), "ns", limiter.Edit{Ref: limiter.EntityRef(id), Change: to(limiter.Record{}), DryRun: true})
		if err != nil || done.Limits != want {
			t.Errorf("deleting %q in a dry run: %+v, %v; want %d limits", id, done, err, want)
		}
		if done := o.edit(t.Context(), limiter.EntityRef(id), limiter.Record{}); done.Limits != want || done.Changed != (want > 0) {
			t.Errorf("deleting %q: %+v, want %d limits", id, done, want)
		}
		if got := o.read("ns", limiter.EntityLimitsRef(id, "r"), limiter.EntityRef(id)); !got[0].Empty() || !got[1].Empty() {
			t.Errorf("%q is still there: %+v", id, got)
		}
	}
	if o.read("ns", limiter.EntityLimitsRef("other", "r"))[0].Empty() {
		t.Errorf("the limits of another entity are missing")
	}
}

// checkEditRefused: an error of the change is returned unchanged, and invalid records are refused.
// In both cases nothing changes.
func checkEditRefused(t T, s ControlStore) {
	o := newOperator(t, s)
	o.putChain([]string{"child", "org"})
	limits := limiter.Record{Limits: o.limits(limiter.PerDay("l", 1))}
	mine := errors.New("of the caller")
	_, generation := o.readAt("ns")
	for name, test := range map[string]struct {
		ref  limiter.Ref
		to   func(limiter.Record) (limiter.Record, error)
		want error
	}{
		"own error":        {limiter.SystemLimitsRef(), func(limiter.Record) (limiter.Record, error) { return limits, mine }, mine},
		"no id":            {limiter.EntityRef(""), to(limiter.Record{Entity: &limiter.Entity{}}), limiter.ErrInvalid},
		"another id":       {limiter.EntityRef("a"), to(limiter.Record{Entity: &limiter.Entity{ID: "b"}}), limiter.ErrInvalid},
		"limits as entity": {limiter.EntityRef("a"), to(limits), limiter.ErrInvalid},
		"entity as limits": {limiter.ResourceLimitsRef("a"), to(limiter.Record{Entity: &limiter.Entity{ID: "a"}}), limiter.ErrInvalid},
		"policy":           {limiter.ResourceLimitsRef("a"), to(limiter.Record{OnUnavailable: limiter.Deny}), limiter.ErrInvalid},
		"kind":             {limiter.Ref{Kind: 99}, to(limits), limiter.ErrInvalid},
		"cycle":            {limiter.EntityRef("org"), to(limiter.Record{Entity: &limiter.Entity{ID: "org", Parent: "child"}}), limiter.ErrInvalid},
	} {
		for _, dry := range []bool{true, false} {
			if _, err := s.Edit(t.Context(), at(0), "ns", limiter.Edit{Ref: test.ref, Change: test.to, DryRun: dry}); !errors.Is(err, test.want) {
				t.Errorf("%s, dry = %t: error %v, want %q", name, dry, err, test.want)
			}
		}
	}
	if _, now := o.readAt("ns"); now != generation {
		t.Errorf("generation %d, and %d before", now, generation)
	}
}

// checkEditsAlone: of concurrent edits that each add one, none is lost.
func checkEditsAlone(t T, s ControlStore) {
	o := newOperator(t, s)
	ctx, cancel := within(t)
	defer cancel()
	const writers, rounds = 8, 5
	ref := limiter.ResourceLimitsRef("counted")
	addOne := func(before limiter.Record) (limiter.Record, error) {
		l, err := limiter.NewLimits(limiter.PerDay("l", capacity(before)+1))
		return limiter.Record{Limits: l}, err
	}
	var g errgroup.Group
	for range writers {
		g.Go(func() error {
			for range rounds {
				if _, err := s.Edit(ctx, at(0), "ns", limiter.Edit{Ref: ref, Change: addOne}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	if got := capacity(o.read("ns", ref)[0]); got != writers*rounds {
		t.Errorf("after %d edits that add one: %d", writers*rounds, got)
	}
}
