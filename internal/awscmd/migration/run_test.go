package migration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/embedded"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

var start = time.UnixMilli(1_760_000_000_000)

func limits(t *testing.T, all ...limiter.Limit) limiter.Record {
	t.Helper()
	l, err := limiter.NewLimits(all...)
	if err != nil {
		t.Fatal(err)
	}
	return limiter.Record{Limits: l}
}

func migrationEntity(id, parent string) limiter.Stored {
	return limiter.Stored{Ref: limiter.EntityRef(id), Record: limiter.Record{Entity: &limiter.Entity{ID: id, Parent: parent, Cascade: parent != ""}}}
}

// example is a set with every kind of record, in no order.
func example(t *testing.T) *Set {
	perHour := limiter.PerHour("tpm", 1000)
	ns := Namespace{Name: "default", Records: []limiter.Stored{
		{Ref: limiter.EntityLimitsRef("key", "gpt"), Record: limits(t, perHour)},
		migrationEntity("key", "team"),
		migrationEntity("team", "org"),
		migrationEntity("org", ""),
		{Ref: limiter.ResourceLimitsRef("gpt"), Record: limits(t, limiter.PerMinute("rpm", 60))},
		{Ref: limiter.SystemLimitsRef(), Record: limiter.Record{Limits: limits(t, limiter.PerDay("rpd", 5)).Limits, OnUnavailable: limiter.Deny}},
	}, Balances: []Balance{
		{Entity: "key", Resource: "gpt", Limits: []LimitBalance{{
			Name: "tpm", Params: perHour.Params(), Bucket: tokenbucket.Bucket{Tokens: 123_456, Refilled: start.UnixMilli()},
		}}},
		{Entity: "org", Resource: "gpt", Limits: []LimitBalance{{
			Name: "rpm", Params: limiter.PerMinute("rpm", 60).Params(), Bucket: tokenbucket.Bucket{Tokens: -7000, Refilled: start.UnixMilli()},
		}}},
		{Entity: "old", Resource: "gpt", Limits: []LimitBalance{{
			Name: "gone", Params: perHour.Params(), Bucket: tokenbucket.Bucket{Refilled: start.UnixMilli()},
		}}},
	}}
	set := &Set{Namespaces: []Namespace{ns}}
	set.Check()
	return set
}

func at(now time.Time) Options {
	return Options{Balances: true, Now: func() time.Time { return now }}
}

// contents is all that a store has of a set, as text.
func contents(t *testing.T, store *embedded.Store, set *Set, now time.Time) []string {
	t.Helper()
	var lines []string
	for _, ns := range set.Namespaces {
		for _, r := range ns.Records {
			found := make([]limiter.Record, 1)
			if _, err := store.Read(t.Context(), ns.Name, []limiter.Ref{r.Ref}, found); err != nil {
				t.Fatal(err)
			}
			lines = append(lines, fmt.Sprintf("%s: %s, equal %t", Subject(r.Ref), found[0].Detail(), found[0].Equal(r.Record)))
		}
		page, err := store.ListBuckets(t.Context(), now, ns.Name, limiter.BucketFilter{}, limiter.Page{})
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range page.Items {
			lines = append(lines, fmt.Sprint(b.Key, b.Limits))
		}
	}
	slices.Sort(lines) // buckets are in no order
	return lines
}

// A run makes the missing records and lowers balances; a second one has nothing to
// do.
func TestRun(t *testing.T) {
	store, set := embedded.New(embedded.Config{}), example(t)
	now := start.Add(36 * time.Second) // tpm has 10 tokens more, and org 36
	got, err := Run(t.Context(), store, set, at(now))
	if want := (Tally{Done: 9, Of: 9, Made: 6, Lowered: 2, Unplaced: 1}); err != nil || got.Tally != want {
		t.Fatalf("got %+v, %v; want %+v", got.Tally, err, want)
	}
	page, err := store.ListBuckets(t.Context(), now, "default", limiter.BucketFilter{}, limiter.Page{})
	if err != nil {
		t.Fatal(err)
	}
	balances := map[string]int64{}
	for _, b := range page.Items {
		balances[b.Key.Entity] = b.Limits[0].Tokens
	}
	if diff := cmp.Diff(map[string]int64{"key": 133_456, "org": 29_000}, balances); diff != "" {
		t.Error(diff)
	}
	later := now.Add(time.Second)
	before := contents(t, store, set, later)
	got, err = Run(t.Context(), store, set, at(later))
	if want := (Tally{Done: 9, Of: 9, Same: 6, Enough: 2, Unplaced: 1}); err != nil || got.Tally != want {
		t.Errorf("again: %+v, %v; want %+v", got.Tally, err, want)
	}
	if diff := cmp.Diff(before, contents(t, store, set, later)); diff != "" {
		t.Error(diff)
	}
}

// broken fails at the n-th change, before or after it was made.
type broken struct {
	*embedded.Store

	left  int
	after bool
}

var errBroken = errors.New("the end of the process")

func (b *broken) Edit(ctx context.Context, now time.Time, namespace string, e limiter.Edit) (limiter.Edited, error) {
	b.left--
	if b.left == 0 && !b.after {
		return limiter.Edited{}, errBroken
	}
	done, err := b.Store.Edit(ctx, now, namespace, e)
	if b.left == 0 {
		err = errBroken
	}
	return done, err
}

func (b *broken) Take(ctx context.Context, now time.Time, ops []limiter.Op) (bool, error) {
	b.left--
	if b.left == 0 && !b.after {
		return false, errBroken
	}
	admitted, err := b.Store.Take(ctx, now, ops)
	if b.left == 0 {
		err = errBroken
	}
	return admitted, err
}

// A run that ends at any change, and is made again, leads to the same as one that does not.
func TestInterrupted(t *testing.T) {
	set, now := example(t), start.Add(36*time.Second)
	whole := embedded.New(embedded.Config{})
	if _, err := Run(t.Context(), whole, set, at(now)); err != nil {
		t.Fatal(err)
	}
	want := contents(t, whole, set, now)
	ended := false
	for n := 1; !ended; n++ {
		for _, after := range []bool{false, true} {
			b := &broken{Store: embedded.New(embedded.Config{}), left: n, after: after}
			_, err := Run(t.Context(), b, set, at(now))
			ended = err == nil
			if ended {
				continue
			}
			if !errors.Is(err, errBroken) {
				t.Fatal(err)
			}
			if _, err = Run(t.Context(), b.Store, set, at(now)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, contents(t, b.Store, set, now)); diff != "" {
				t.Errorf("ended at change %d, made %t: %s", n, after, diff)
			}
		}
		if n > 100 {
			t.Fatal("a run of 9 records has more than 100 changes")
		}
	}
}

// A dry run counts, and changes nothing.
func TestDryRun(t *testing.T) {
	store, set := embedded.New(embedded.Config{}), example(t)
	o := at(start)
	o.DryRun = true
	for range 2 {
		got, err := Run(t.Context(), store, set, o)
		if want := (Tally{Done: 9, Of: 9, Made: 6}); err != nil || got.Tally != want {
			t.Fatalf("got %+v, %v; want %+v", got.Tally, err, want)
		}
	}
	if err := store.PutLimits(t.Context(), "default", limiter.ResourceLimitsRef("gpt"), limits(t, limiter.PerMinute("rpm", 61))); err != nil {
		t.Fatal(err)
	}
	got, err := Run(t.Context(), store, set, o)
	if want := (Tally{Done: 9, Of: 9, Made: 5, Kept: 1}); err != nil || got.Tally != want {
		t.Fatalf("got %+v, %v; want %+v", got.Tally, err, want)
	}
}

// A record that differs is kept, and replaced only on demand.
func TestOverwrite(t *testing.T) {
	store, set := embedded.New(embedded.Config{}), example(t)
	if _, err := store.PutEntity(t.Context(), start, "default", limiter.Entity{ID: "org", Name: "renamed"}); err != nil {
		t.Fatal(err)
	}
	o := Options{Now: func() time.Time { return start }}
	got, err := Run(t.Context(), store, set, o)
	want := Outcome{Tally: Tally{Done: 6, Of: 6, Made: 5, Kept: 1}, Differ: []limiter.Ref{limiter.EntityRef("org")}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Fatal(diff, err)
	}
	o.Overwrite = true
	got, err = Run(t.Context(), store, set, o)
	want = Outcome{Tally: Tally{Done: 6, Of: 6, Same: 5, Replaced: 1}, Differ: []limiter.Ref{limiter.EntityRef("org")}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Fatal(diff, err)
	}
	got, err = Run(t.Context(), store, set, o)
	if err != nil || got.Same != 6 {
		t.Fatalf("%+v, %v", got, err)
	}
}

// Chains that no store takes are losses, and parents come before children.
func TestCheck(t *testing.T) {
	ns := Namespace{Name: "n", Records: []limiter.Stored{migrationEntity("a", "b"), migrationEntity("b", "a"), migrationEntity("z", "y"), migrationEntity("y", "")}}
	for i := range limiter.MaxLevels + 1 {
		parent := ""
		if i > 0 {
			parent = fmt.Sprint("level-", i-1)
		}
		ns.Records = append(ns.Records, migrationEntity(fmt.Sprint("level-", i), parent))
	}
	set := &Set{Namespaces: []Namespace{ns}}
	set.Check()
	lost := make([]string, 0, len(set.Losses))
	for _, l := range set.Losses {
		lost = append(lost, l.Subject)
	}
	if diff := cmp.Diff([]string{`entity "a"`, `entity "b"`, `entity "level-8"`}, lost); diff != "" {
		t.Error(diff, set.Losses)
	}
	got, err := Run(t.Context(), embedded.New(embedded.Config{}), set, at(start))
	if err != nil || got.Made != limiter.MaxLevels+2 {
		t.Errorf("%+v, %v", got, err)
	}
	if got := set.Namespaces[0].Records[0].Ref.Entity + set.Namespaces[0].Records[2].Ref.Entity; got != "level-0level-1" {
		t.Errorf("the first and the third are %s", got)
	}
}

// Whether a subject is disabled is no part of a set: it stays as it is, and makes no difference.
func TestDisabledSubjects(t *testing.T) {
	ctx := t.Context()
	store := embedded.New(embedded.Config{})
	disable := func(ref limiter.Ref) {
		t.Helper()
		if _, err := store.Edit(ctx, start, "default", limiter.Edit{Ref: ref, Switch: limiter.Disable}); err != nil {
			t.Fatal(err)
		}
	}
	set := example(t)
	disable(limiter.EntityRef("org")) // before it is stored
	first, err := Run(ctx, store, set, at(start))
	if err != nil || first.Made != 6 || first.Kept != 0 {
		t.Fatalf("first run: %+v, %v; want 6 records made", first, err)
	}
	disable(limiter.EntityRef("team"))
	o := at(start)
	o.Overwrite = true
	again, err := Run(ctx, store, set, o)
	if err != nil || again.Same != 6 || again.Replaced != 0 || len(again.Differ) != 0 {
		t.Errorf("second run: %+v, %v; want 6 records that are the same", again, err)
	}
	for _, id := range []string{"org", "team"} {
		r, err := store.Get(ctx, "default", limiter.EntityRef(id))
		if err != nil || !r.Disabled || r.Entity == nil {
			t.Errorf("%s: %+v, %v; want it stored and disabled", id, r, err)
		}
	}
}
