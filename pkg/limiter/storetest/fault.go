package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// Method is a method of a store that may fail.
type Method uint8

// The methods that may fail, and that are counted.
const (
	Take Method = iota
	Read
	PutEntity
	DeleteEntity
	PutLimits
	RaiseGeneration
	Settle
	Secret
	methods
)

// String returns the method's name.
func (m Method) String() string {
	switch m {
	case Take:
		return "Take"
	case Read:
		return "Read"
	case PutEntity:
		return "PutEntity"
	case DeleteEntity:
		return "DeleteEntity"
	case PutLimits:
		return "PutLimits"
	case RaiseGeneration:
		return "RaiseGeneration"
	case Settle:
		return "Settle"
	case Secret:
		return "Secret"
	case methods:
	}
	return "unknown"
}

// Fault is the failure of one call.
type Fault uint8

// The faults.
const (
	None       Fault = iota // the call goes through
	FailBefore              // nothing is applied; ErrUnavailable
	FailAfter               // all is applied, the answer is lost; ErrUncertain
	Block                   // nothing is applied; ErrUnavailable once the context is done
	faults
)

// String returns the fault's name.
func (f Fault) String() string {
	switch f {
	case None:
		return "none"
	case FailBefore:
		return "fail before"
	case FailAfter:
		return "fail after"
	case Block:
		return "block"
	case faults:
	}
	return "unknown"
}

// errInjected is the cause of every failure that is injected.
var errInjected = errors.New("injected fault")

// Plan returns the fault of the n-th call of a method, from 0. A Faulty calls it for one call at a
// time.
type Plan func(m Method, n int) Fault

// Always returns the plan by which every call of the given methods has the fault; no methods = all.
func Always(f Fault, only ...Method) Plan {
	return func(m Method, _ int) Fault {
		if len(only) == 0 || slices.Contains(only, m) {
			return f
		}
		return None
	}
}

// Script returns the plan by which the calls of a method have the given faults, one after the
// other, and None after the last. Other methods have none.
func Script(m Method, script ...Fault) Plan {
	return func(called Method, n int) Fault {
		if called != m || n >= len(script) {
			return None
		}
		return script[n]
	}
}

// Seeded returns a random plan: each call has each of the given faults with a probability of
// permille thousandths. The same seed gives the same plan.
func Seeded(seed uint64, permille int, of ...Fault) Plan {
	r := rand.New(rand.NewPCG(seed, seed)) // #nosec G404 -- a plan must be repeatable
	return func(Method, int) Fault {
		roll := r.IntN(1000)
		for i, f := range of {
			if roll < (i+1)*permille {
				return f
			}
		}
		return None
	}
}

// Faulty is a store that fails by plan. Subscribe, Capabilities and Close never do.
type Faulty struct {
	limiter.Store

	mu    sync.Mutex
	plan  Plan
	calls [methods]int
	met   [faults]int
}

// NewFaulty returns inner with failures by plan; nil = none.
func NewFaulty(inner limiter.Store, plan Plan) *Faulty { return &Faulty{Store: inner, plan: plan} }

// Use puts another plan in force; nil = no faults. The calls of each method are
// numbered from 0 again.
func (f *Faulty) Use(plan Plan) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.plan, f.calls = plan, [methods]int{}
}

// Count returns the number of calls with a fault, so that a test can require that its fault
// occurred.
func (f *Faulty) Count(fault Fault) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.met[fault]
}

func (f *Faulty) next(m Method) Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	fault := None
	if f.plan != nil {
		fault = f.plan(m, f.calls[m])
	}
	f.calls[m]++
	f.met[fault]++
	return fault
}

// call makes one call of the inner store, with its fault.
func (f *Faulty) call(ctx context.Context, m Method, inner func() error) error {
	switch f.next(m) {
	case FailBefore:
		return fmt.Errorf("%w: %s: %w", limiter.ErrUnavailable, m, errInjected)
	case FailAfter:
		if err := inner(); err != nil {
			return err
		}
		return fmt.Errorf("%w: %s: %w", limiter.ErrUncertain, m, errInjected)
	case Block:
		<-ctx.Done()
		return fmt.Errorf("%w: %s: %w: %w", limiter.ErrUnavailable, m, errInjected, ctx.Err())
	case None, faults:
	}
	return inner()
}

// Take implements limiter.Store. On an error the results in ops are falsified, to expose a caller
// that uses them.
func (f *Faulty) Take(ctx context.Context, now time.Time, ops []limiter.Op) (admitted bool, err error) {
	err = f.call(ctx, Take, func() error {
		admitted, err = f.Store.Take(ctx, now, ops)
		return err
	})
	if err != nil {
		admitted = false
		spoil(ops)
	}
	return admitted, err
}

func spoil(ops []limiter.Op) {
	for i := range ops {
		for j := range ops[i].Spends {
			sp := &ops[i].Spends[j]
			sp.Held, sp.Exceeded = true, !sp.Exceeded
			sp.Limits, sp.Index = ops[i].Limits, 0
			sp.Bucket = tokenbucket.Bucket{Tokens: -tokenbucket.MaxAmount}
		}
	}
}

// Read implements limiter.Catalog. On an error the records are empty.
func (f *Faulty) Read(ctx context.Context, namespace string, refs []limiter.Ref, records []limiter.Record) (generation uint64, err error) {
	err = f.call(ctx, Read, func() error {
		generation, err = f.Store.Read(ctx, namespace, refs, records)
		return err
	})
	if err != nil {
		generation = 0
		clear(records)
	}
	return generation, err
}

// PutEntity implements limiter.Catalog.
func (f *Faulty) PutEntity(ctx context.Context, now time.Time, namespace string, e limiter.Entity) (stored limiter.Entity, err error) {
	err = f.call(ctx, PutEntity, func() error {
		stored, err = f.Store.PutEntity(ctx, now, namespace, e)
		return err
	})
	if err != nil {
		stored = limiter.Entity{}
	}
	return stored, err
}

// DeleteEntity implements limiter.Catalog.
func (f *Faulty) DeleteEntity(ctx context.Context, namespace, id string) error {
	return f.call(ctx, DeleteEntity, func() error { return f.Store.DeleteEntity(ctx, namespace, id) })
}

// PutLimits implements limiter.Catalog.
func (f *Faulty) PutLimits(ctx context.Context, namespace string, ref limiter.Ref, r limiter.Record) error {
	return f.call(ctx, PutLimits, func() error { return f.Store.PutLimits(ctx, namespace, ref, r) })
}

// RaiseGeneration implements limiter.Catalog.
func (f *Faulty) RaiseGeneration(ctx context.Context) error {
	return f.call(ctx, RaiseGeneration, func() error { return f.Store.RaiseGeneration(ctx) })
}

// Settle implements limiter.Settlements.
func (f *Faulty) Settle(ctx context.Context, now time.Time, m limiter.Mark) (won bool, err error) {
	err = f.call(ctx, Settle, func() error {
		won, err = f.Store.Settle(ctx, now, m)
		return err
	})
	return won && err == nil, err
}

// Secret implements limiter.Settlements.
func (f *Faulty) Secret(ctx context.Context, name string, candidate []byte) (secret []byte, err error) {
	err = f.call(ctx, Secret, func() error {
		secret, err = f.Store.Secret(ctx, name, candidate)
		return err
	})
	if err != nil {
		secret = nil
	}
	return secret, err
}
