package storetest

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// epoch is the start of the checks, in Unix milliseconds: 2100-01-01.
const epoch int64 = 4102444800000

// tokens returns n tokens in millitokens.
func tokens(n int64) int64 { return n * limiter.Milli }

// client is a caller of one store, in one goroutine. Every error fails the test.
type client struct {
	T
	store limiter.Store
}

func newClient(t T, s limiter.Store) client { return client{T: t, store: s} }

// take decides ops at ms milliseconds after the epoch.
func (c client) take(ms int64, ops ...limiter.Op) bool {
	c.Helper()
	admitted, err := c.store.Take(c.Context(), at(ms), ops)
	if err != nil {
		c.Fatalf("Take at %d ms: %v", ms, err)
	}
	return admitted
}

// want decides ops at ms and requires the answer.
func (c client) want(admitted bool, ms int64, ops ...limiter.Op) {
	c.Helper()
	if got := c.take(ms, ops...); got != admitted {
		c.Fatalf("at %d ms: admitted = %t, want %t; %s", ms, got, admitted, describe(ops))
	}
}

// balance returns the balance of the op's only limit at ms, and takes nothing.
func (c client) balance(ms int64, op limiter.Op) int64 {
	c.Helper()
	return c.state(ms, op).Tokens
}

// state returns the bucket of the op's only limit, refilled to ms at least.
func (c client) state(ms int64, op limiter.Op) tokenbucket.Bucket {
	c.Helper()
	op.Spends = []limiter.Spend{{Limit: op.Spends[0].Limit}}
	ops := []limiter.Op{op}
	c.want(true, ms, ops...)
	if !ops[0].Spends[0].Held {
		c.Fatalf("at %d ms: the bucket does not hold limit %s", ms, op.Spends[0].Limit)
	}
	return ops[0].Spends[0].Bucket
}

// wantBalance requires a balance in millitokens at ms.
func (c client) wantBalance(want, ms int64, op limiter.Op) {
	c.Helper()
	if got := c.balance(ms, op); got != want {
		c.Errorf("balance of %q %q %s at %d ms = %d, want %d millitokens",
			cut(op.Bucket.Entity), cut(op.Bucket.Resource), op.Spends[0].Limit, ms, got, want)
	}
}

// limits returns a set of limits, which must be valid.
func (c client) limits(l ...limiter.Limit) *limiter.Limits {
	c.Helper()
	set, err := limiter.NewLimits(l...)
	if err != nil {
		c.Fatalf("limits of the case: %v", err)
	}
	return set
}

// one returns an op on the bucket of an entity, in the default namespace and for
// the resource "r", under a single limit, at generation 1.
func (c client) one(entity string, l limiter.Limit, sp limiter.Spend) limiter.Op {
	c.Helper()
	sp.Limit = l.Name
	return on(entity, c.limits(l), sp)
}

// on returns an op on the bucket of an entity, in the default namespace and for
// the resource "r", at generation 1.
func on(entity string, limits *limiter.Limits, spends ...limiter.Spend) limiter.Op {
	key := limiter.BucketKey{Namespace: limiter.DefaultNamespace, Entity: entity, Resource: "r"}
	return limiter.Op{Bucket: key, Limits: limits, Generation: 1, Spends: spends}
}

// spending returns a copy of op with other spends.
func spending(op limiter.Op, spends ...limiter.Spend) limiter.Op {
	for i := range spends {
		if spends[i].Limit == "" {
			spends[i].Limit = op.Spends[0].Limit
		}
	}
	op.Spends = spends
	return op
}

// at returns the time ms milliseconds after the epoch.
func at(ms int64) time.Time { return time.UnixMilli(epoch + ms).UTC() }

// seeded returns the random numbers of one caller, the same in every run.
func seeded(seed uint64, caller int) *rand.Rand {
	return rand.New(rand.NewPCG(seed, uint64(caller))) // #nosec G404 G115 -- repeatable, and callers count from 0
}

// within returns a context that ends calls that hang, long after any correct call has ended.
func within(t T) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), 30*time.Second)
}

// read reads records.
func (c client) read(namespace string, refs ...limiter.Ref) []limiter.Record {
	c.Helper()
	records, _ := c.readAt(namespace, refs...)
	return records
}

// readAt reads records and their generation.
func (c client) readAt(namespace string, refs ...limiter.Ref) ([]limiter.Record, uint64) {
	c.Helper()
	records := make([]limiter.Record, len(refs))
	generation, err := c.store.Read(c.Context(), namespace, refs, records)
	if err != nil {
		c.Fatalf("Read of %d records: %v", len(refs), err)
	}
	return records, generation
}

// putLimits stores limits.
func (c client) putLimits(namespace string, ref limiter.Ref, l ...limiter.Limit) {
	c.Helper()
	if err := c.store.PutLimits(c.Context(), namespace, ref, limiter.Record{Limits: c.limits(l...)}); err != nil {
		c.Fatalf("PutLimits of kind %d, %q, %q: %v", ref.Kind, cut(ref.Entity), cut(ref.Resource), err)
	}
}

// putEntity stores an entity.
func (c client) putEntity(namespace string, e limiter.Entity) limiter.Entity {
	c.Helper()
	stored, err := c.store.PutEntity(c.Context(), at(0), namespace, e)
	if err != nil {
		c.Fatalf("PutEntity of %q: %v", cut(e.ID), err)
	}
	return stored
}
