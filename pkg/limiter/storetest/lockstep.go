package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// lockstepChecks run random calls against the store and the reference side by side: both decide the
// same, and report the same states.
func lockstepChecks() []check {
	return []check{
		{name: "lockstep/buckets", run: lockstep(bucketSteps)},
		{name: "lockstep/any clock", run: lockstep(clockSteps)},
		{name: "lockstep/catalog", run: lockstep(catalogSteps)},
	}
}

// pair is a store and the reference, in an unused namespace.
type pair struct {
	*rapid.T
	store     limiter.Store
	reference *reference
	namespace string
}

func lockstep(steps func(pair)) func(T, limiter.Store) {
	return func(t T, s limiter.Store) {
		ref := newReference()
		var run int
		rapid.Check(t, func(rt *rapid.T) {
			run++
			steps(pair{rt, s, ref, fmt.Sprint("run ", run)})
		})
	}
}

// draw returns a number from least to most.
func (p pair) draw(what string, least, most int64) int64 {
	return rapid.Int64Range(least, most).Draw(p.T, what)
}

func draw[V any](p pair, what string, from []V) V {
	return rapid.SampledFrom(from).Draw(p.T, what)
}

// lockstepLimits returns the limits of buckets: limits that come, go and change.
func lockstepLimits(p pair) []*limiter.Limits {
	c := client{T: p, store: p.store}
	x, y, z := limiter.PerMinute("x", 10), limiter.Custom("y", 100, 7, 1100*time.Millisecond), limiter.PerHour("z", 1000).WithMaxDebt(5)
	return []*limiter.Limits{
		c.limits(x), c.limits(x, y), c.limits(x, y, z), c.limits(y, z), c.limits(x.WithBurst(4), z.WithMaxDebt(limiter.NoDebt)),
		c.limits(limiter.PerSecond("x", 3), y.WithBurst(500)), c.limits(limiter.Unlimited("x"), y), c.limits(x.WithBurst(30), limiter.Unlimited("y"), z.WithBurst(9)),
		c.limits(limiter.Custom("x", 20, 0, time.Second), y), c.limits(x, limiter.Custom("y", 50, 0, time.Second)), // these never refill
	}
}

// bucketSteps decides over up to three of four buckets at a time, with limits of any version, at
// times that do not run backwards. It uses no token leases: with tokens on lease a store may report
// fewer.
func bucketSteps(p pair) {
	sets := lockstepLimits(p)
	keys := make([]limiter.BucketKey, 4)
	for i := range keys {
		keys[i] = limiter.BucketKey{Namespace: p.namespace, Entity: fmt.Sprint("e", i%2), Resource: fmt.Sprint("r", i/2)}
	}
	now := int64(0)
	for range p.draw("steps", 1, 40) {
		now += draw(p, "elapsed", []int64{0, 0, 1, 7, 100, 999, 5000, 60_000, 3_600_000})
		ops := make([]limiter.Op, p.draw("ops", 1, 3))
		first := p.draw("first bucket", 0, 3)
		for i := range ops {
			v := version{draw(p, "limits", sets), uint64(p.draw("generation", 1, 6))} // #nosec G115 -- above 0
			key := keys[(first+int64(i))%4]
			// A store may have dropped a full bucket, and its version with it.
			if held, full := p.idle(key, epoch+now); full {
				v = held
			}
			ops[i] = limiter.Op{Bucket: key, Limits: v.limits, Generation: v.generation, Spends: drawSpends(p, v.limits), Lease: limiter.LeasePolicy{None: true}}
		}
		if admitted := p.decide(now, ops); !admitted && len(ops) > 1 {
			p.awaitRollback(now, ops)
		}
	}
}

// awaitRollback peeks at the buckets of a denied call until both stores have the same balances. A store
// may answer before the tokens of other buckets are back.
func (p pair) awaitRollback(now int64, ops []limiter.Op) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.Context(), rollbackTime)
	defer cancel()
	for {
		got, want := peeks(ops), peeks(ops)
		if _, err := p.reference.Take(ctx, at(now), want); err != nil {
			p.Fatalf("reference: Take: %v", err)
		}
		if _, err := p.store.Take(ctx, at(now), got); err != nil {
			p.Fatalf("Take: %v", err)
		}
		if p.same(got, want) {
			return
		}
		if ctx.Err() != nil {
			p.Fatalf("at %d ms: a denied call is not rolled back after %v\ngot:%s\nreference:%s", now, rollbackTime, describe(got), describe(want))
		}
	}
}

// rollbackTime is the longest time that awaitRollback waits.
const rollbackTime = 10 * time.Second

// peeks returns ops that peek at the limits of others.
func peeks(ops []limiter.Op) []limiter.Op {
	peeks := slices.Clone(ops)
	for i := range peeks {
		op := &peeks[i]
		op.Shard, op.Spends = 0, make([]limiter.Spend, op.Limits.Len())
		for k := range op.Spends {
			op.Spends[k] = limiter.Spend{Limit: op.Limits.At(k).Name, Look: true}
		}
	}
	return peeks
}

// drawSpends draws spends of some of the limits.
func drawSpends(p pair, limits *limiter.Limits) []limiter.Spend {
	first := p.draw("first limit", 0, int64(limits.Len()-1))
	spends := make([]limiter.Spend, p.draw("spends", 1, int64(limits.Len())))
	for i := range spends {
		l := limits.At((int(first) + i) % limits.Len())
		most := max(l.Capacity, 1) * 1500
		sp := limiter.Spend{Limit: l.Name}
		switch p.draw("what", 0, 6) {
		case 0:
			sp.Look = true
		case 1:
			sp.Charge = p.draw("charge", 0, 8*most)
		case 2:
			sp.Refund = p.draw("refund", 0, most)
		case 3:
			sp.Take, sp.Charge, sp.Refund = p.draw("take", 0, most), p.draw("charge", 0, most), p.draw("refund", 0, most)
		default:
			sp.Take = p.draw("take", 0, most)
		}
		spends[i] = sp
	}
	return spends
}

// decide makes both stores decide, compares all their results, and reports whether they admit.
func (p pair) decide(now int64, ops []limiter.Op) bool {
	p.Helper()
	wantOps := slices.Clone(ops)
	for i, op := range ops {
		wantOps[i].Spends = slices.Clone(op.Spends)
	}
	want, err := p.reference.Take(p.Context(), at(now), wantOps)
	if err != nil {
		p.Fatalf("reference: Take: %v", err)
	}
	got, err := p.store.Take(p.Context(), at(now), ops)
	if err != nil {
		p.Fatalf("Take: %v", err)
	}
	if got != want || !p.same(ops, wantOps) {
		p.Fatalf("at %d ms: admitted = %t, reference %t\ngot:%s\nreference:%s", now, got, want, describe(ops), describe(wantOps))
	}
	return got
}

// same reports whether two stores give the same results for all ops, or the reference may follow.
func (p pair) same(got, want []limiter.Op) bool {
	for i, op := range got {
		if !p.sameResults(op, want[i]) {
			return false
		}
	}
	return true
}

// sameResults reports whether two stores have the same results for an op, or the reference may
// follow.
func (p pair) sameResults(got, want limiter.Op) bool {
	for i, sp := range got.Spends {
		if !sameResult(sp, want.Spends[i]) && !p.follow(got.Bucket, sp, want.Spends[i]) {
			return false
		}
	}
	return true
}

// sameResult reports whether two stores have the same results for a spend. A spend that is not held
// has no state.
func sameResult(a, b limiter.Spend) bool {
	if a.Held != b.Held || a.Exceeded != b.Exceeded {
		return false
	}
	return !a.Held || a.Bucket == b.Bucket && a.Index == b.Index && a.Limits.Hash() == b.Limits.Hash()
}

// follow lets the reference carry the use that a store carries, and reports whether it may. A store
// may round use up, by less than a millitoken, when it takes from a full bucket. This includes
// takes that it then rolls back.
func (p pair) follow(key limiter.BucketKey, got, want limiter.Spend) bool {
	if !got.Held || !want.Held || got.Exceeded != want.Exceeded || got.Limits.Hash() != want.Limits.Hash() {
		return false
	}
	l := want.Limits.At(want.Index)
	is, was := balanceOf(l, got.Bucket), balanceOf(l, want.Bucket)
	more := new(big.Rat).Sub(is.use, was.use)
	if !is.full() || !was.full() || is.at != was.at || more.Sign() < 0 || more.Cmp(big.NewRat(1, 1)) >= 0 {
		return false
	}
	r := p.reference
	r.mu.Lock()
	defer r.mu.Unlock()
	r.buckets[key].held[l.Name].use = is.use
	return true
}

// idle is refBuckets.idle of the reference.
func (p pair) idle(key limiter.BucketKey, now int64) (version, bool) {
	p.reference.mu.Lock()
	defer p.reference.mu.Unlock()
	return p.reference.buckets.idle(key, now)
}

// clockSteps uses a bucket of one limit at any times. A store may decide later than its caller's
// clock, and returns that time; the reference follows.
func clockSteps(p pair) {
	l := lockstepLimits(p)[p.draw("x or y", 0, 1)].At(0)
	op := client{T: p, store: p.store}.one("user", l, limiter.Spend{Take: 1})
	op.Bucket.Namespace = p.namespace
	p.decide(0, []limiter.Op{op})
	last := epoch
	for range p.draw("steps", 1, 40) {
		now := p.draw("now", -200_000, 200_000)
		ops := []limiter.Op{spending(op, drawSpends(p, op.Limits)...)}
		ops[0].Lease.None = true // as in bucketSteps
		got, err := p.store.Take(p.Context(), at(now), ops)
		if err != nil {
			p.Fatalf("Take: %v", err)
		}
		decided := ops[0].Spends[0].Bucket.Refilled
		if decided < max(last, epoch+now) {
			p.Fatalf("a call at %d ms was decided at %d ms, of a bucket refilled to %d ms", now, decided-epoch, last-epoch)
		}
		last = decided
		wantOps := []limiter.Op{spending(ops[0], ops[0].Spends[0])}
		want, err := p.reference.takeAt(p.Context(), decided, wantOps)
		if err != nil {
			p.Fatalf("reference: Take: %v", err)
		}
		if got != want || !sameResult(ops[0].Spends[0], wantOps[0].Spends[0]) {
			p.Fatalf("at %d ms: admitted = %t, reference %t\ngot:%s\nreference:%s", now, got, want, describe(ops), describe(wantOps))
		}
	}
}

// catalogSteps changes entities and limits.
func catalogSteps(p pair) {
	names := []string{"a", "b", "c", "d"}
	sets := lockstepLimits(p)
	refs := make([]limiter.Ref, 0, 3*len(names)+1)
	for _, name := range names {
		refs = append(refs, limiter.EntityRef(name), limiter.EntityLimitsRef(name, "r"), limiter.ResourceLimitsRef(name))
	}
	refs = append(refs, limiter.SystemLimitsRef())
	for range p.draw("steps", 1, 30) {
		name := draw(p, "name", names)
		switch p.draw("change", 0, 5) {
		case 0:
			p.both("DeleteEntity", func(s limiter.Store) error { return s.DeleteEntity(p.Context(), p.namespace, name) })
		case 1, 2:
			ref, r := draw(p, "ref", refs), limiter.Record{}
			if p.draw("put or delete", 0, 2) > 0 {
				r.Limits = draw(p, "limits", sets)
			}
			p.both("PutLimits", func(s limiter.Store) error { return s.PutLimits(p.Context(), p.namespace, ref, r) })
		default:
			e := limiter.Entity{ID: name, Parent: draw(p, "parent", append(names, "")), Name: draw(p, "new name", names), Cascade: p.draw("cascade", 0, 1) == 1}
			off := uint64(max(0, p.draw("version off by", -8, 1))) // #nosec G115 -- not below 0
			p.both("PutEntity", func(s limiter.Store) error { return p.putEntity(s, e, off) })
		}
		if diff := cmp.Diff(p.records(p.reference, refs), p.records(p.store, refs), cmpopts.IgnoreFields(limiter.Entity{}, "Version"),
			cmp.Transformer("hash", (*limiter.Limits).Hash)); diff != "" {
			p.Fatalf("records (-reference +got):\n%s", diff)
		}
	}
}

// putEntity puts e at the version that the store has, or at another.
func (p pair) putEntity(s limiter.Store, e limiter.Entity, off uint64) error {
	if stored := p.records(s, []limiter.Ref{limiter.EntityRef(e.ID)})[0].Entity; stored != nil {
		e.Version = stored.Version
	}
	e.Version += off
	_, err := s.PutEntity(p.Context(), at(7), p.namespace, e)
	return err
}

func (p pair) records(s limiter.Store, refs []limiter.Ref) []limiter.Record {
	records := make([]limiter.Record, len(refs))
	if _, err := s.Read(p.Context(), p.namespace, refs, records); err != nil {
		p.Fatalf("Read: %v", err)
	}
	return records
}

// both makes a change in both stores, and compares the outcomes.
func (p pair) both(what string, change func(limiter.Store) error) {
	p.Helper()
	want, got := change(p.reference), change(p.store)
	for _, kind := range []error{limiter.ErrInvalid, limiter.ErrConflict} {
		if errors.Is(want, kind) != errors.Is(got, kind) {
			p.Fatalf("%s: error = %v, reference %v", what, got, want)
		}
	}
	if want == nil && got != nil {
		p.Fatalf("%s: %v", what, got)
	}
}
