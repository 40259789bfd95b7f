package storetest

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Counting is a store that counts its calls.
type Counting struct {
	limiter.Store

	calls [methods]atomic.Int64
}

// NewCounting returns inner with its calls counted.
func NewCounting(inner limiter.Store) *Counting { return &Counting{Store: inner} }

// Count returns the number of calls of a method.
func (c *Counting) Count(m Method) int64 { return c.calls[m].Load() }

// Total returns the number of calls of all methods.
func (c *Counting) Total() int64 {
	var n int64
	for i := range c.calls {
		n += c.calls[i].Load()
	}
	return n
}

// Reset counts from 0 again.
func (c *Counting) Reset() {
	for i := range c.calls {
		c.calls[i].Store(0)
	}
}

// Take implements limiter.Store.
func (c *Counting) Take(ctx context.Context, now time.Time, ops []limiter.Op) (bool, error) {
	c.calls[Take].Add(1)
	return c.Store.Take(ctx, now, ops)
}

// Read implements limiter.Catalog.
func (c *Counting) Read(ctx context.Context, namespace string, refs []limiter.Ref, records []limiter.Record) (uint64, error) {
	c.calls[Read].Add(1)
	return c.Store.Read(ctx, namespace, refs, records)
}

// PutEntity implements limiter.Catalog.
func (c *Counting) PutEntity(ctx context.Context, now time.Time, namespace string, e limiter.Entity) (limiter.Entity, error) {
	c.calls[PutEntity].Add(1)
	return c.Store.PutEntity(ctx, now, namespace, e)
}

// DeleteEntity implements limiter.Catalog.
func (c *Counting) DeleteEntity(ctx context.Context, namespace, id string) error {
	c.calls[DeleteEntity].Add(1)
	return c.Store.DeleteEntity(ctx, namespace, id)
}

// PutLimits implements limiter.Catalog.
func (c *Counting) PutLimits(ctx context.Context, namespace string, ref limiter.Ref, r limiter.Record) error {
	c.calls[PutLimits].Add(1)
	return c.Store.PutLimits(ctx, namespace, ref, r)
}

// RaiseGeneration implements limiter.Catalog.
func (c *Counting) RaiseGeneration(ctx context.Context) error {
	c.calls[RaiseGeneration].Add(1)
	return c.Store.RaiseGeneration(ctx)
}

// Settle implements limiter.Settlements.
func (c *Counting) Settle(ctx context.Context, now time.Time, m limiter.Mark) (bool, error) {
	c.calls[Settle].Add(1)
	return c.Store.Settle(ctx, now, m)
}

// Secret implements limiter.Settlements.
func (c *Counting) Secret(ctx context.Context, name string, candidate []byte) ([]byte, error) {
	c.calls[Secret].Add(1)
	return c.Store.Secret(ctx, name, candidate)
}
