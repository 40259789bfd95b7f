package storetest

import (
	"context"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// ControlStore is a store that operators can use.
type ControlStore interface {
	limiter.Store
	limiter.Control
}

// controlCheck is one case of RunControl, run with a store of its own.
type controlCheck struct {
	name  string
	needs func(limiter.BackendCapabilities) bool // nil = nothing
	run   func(t T, s ControlStore)
}

// operator is a caller of limiter.Control. Every error fails the test.
type operator struct {
	client

	store ControlStore
}

func newOperator(t T, s ControlStore) operator { return operator{newClient(t, s), s} }

// edit replaces a record in namespace "ns".
func (o operator) edit(ctx context.Context, ref limiter.Ref, r limiter.Record) limiter.Edited {
	o.Helper()
	done, err := o.store.Edit(ctx, at(7), "ns", limiter.Edit{Ref: ref, Change: to(r)})
	if err != nil {
		o.Fatalf("Edit of %+v: %v", ref, err)
	}
	return done
}

// to is a change to a record.
func to(r limiter.Record) func(limiter.Record) (limiter.Record, error) {
	return func(limiter.Record) (limiter.Record, error) { return r, nil }
}

// all returns the items of every page, each of at most size.
func all[V any](t T, size int, list func(limiter.Page) (limiter.PageOf[V], error)) (items []V) {
	t.Helper()
	p := limiter.Page{Size: size}
	for pages := 0; ; pages++ {
		page, err := list(p)
		if err != nil || len(page.Items) > size || pages > 10_000 {
			t.Fatalf("page %d: %d items, error %v; want at most %d", pages, len(page.Items), err, size)
		}
		items = append(items, page.Items...)
		p.After = page.Next
		if p.After == "" {
			return items
		}
	}
}
