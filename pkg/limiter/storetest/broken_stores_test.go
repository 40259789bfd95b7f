package storetest

import (
	"context"
	"errors"
	"math/big"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// broken is a way to break the reference, and the checks that find it.
type broken struct {
	name    string
	wrap    func(*reference) limiter.Store
	foundBy []string
}

func brokenStores() []broken {
	return slices.Concat(brokenNames(), brokenSpends(), brokenDecisions(), brokenClocks(), brokenChanges(), brokenUse(), brokenLives(), brokenCatalogs(), brokenSettlements(), brokenLeavers())
}

// taker is a store with another Take.
type taker struct {
	*reference
	take func(ctx context.Context, now time.Time, ops []limiter.Op) (bool, error)
}

func (s taker) Take(ctx context.Context, now time.Time, ops []limiter.Op) (bool, error) {
	return s.take(ctx, now, ops)
}

// breakTake breaks Take by a function that gets the reference too.
func breakTake(take func(ctx context.Context, r *reference, now time.Time, ops []limiter.Op) (bool, error)) func(*reference) limiter.Store {
	return func(r *reference) limiter.Store {
		return taker{r, func(ctx context.Context, now time.Time, ops []limiter.Op) (bool, error) {
			return take(ctx, r, now, ops)
		}}
	}
}

// renaming is a store that confuses keys.
func renaming(rename func(k limiter.BucketKey) limiter.BucketKey) func(*reference) limiter.Store {
	return breakTake(func(ctx context.Context, r *reference, now time.Time, ops []limiter.Op) (bool, error) {
		renamed := append([]limiter.Op(nil), ops...) // the spends are shared
		for i := range renamed {
			renamed[i].Bucket = rename(ops[i].Bucket)
		}
		return r.Take(ctx, now, renamed)
	})
}

// respending is a store that uses other amounts.
func respending(change func(op limiter.Op, sp *limiter.Spend)) func(*reference) limiter.Store {
	return breakTake(func(ctx context.Context, r *reference, now time.Time, ops []limiter.Op) (bool, error) {
		changed := append([]limiter.Op(nil), ops...)
		for i := range changed {
			changed[i].Spends = append([]limiter.Spend(nil), ops[i].Spends...)
			for j := range changed[i].Spends {
				change(ops[i], &changed[i].Spends[j])
			}
		}
		admitted, err := r.Take(ctx, now, changed)
		for i := range ops {
			for j := range ops[i].Spends {
				sp, got := &ops[i].Spends[j], changed[i].Spends[j]
				sp.Held, sp.Exceeded, sp.Limits, sp.Index, sp.Bucket = got.Held, got.Exceeded, got.Limits, got.Index, got.Bucket
			}
		}
		return admitted, err
	})
}

func brokenNames() []broken {
	inEntity := func(change func(string) string) func(*reference) limiter.Store {
		return renaming(func(k limiter.BucketKey) limiter.BucketKey {
			k.Entity = change(k.Entity)
			return k
		})
	}
	return []broken{
		{"folds case", inEntity(strings.ToLower), []string{"names/entities"}},
		{"trims blanks", inEntity(strings.TrimSpace), []string{"names/entities"}},
		{"trims blanks at the end", inEntity(func(s string) string { return strings.TrimRight(s, " ") }), []string{"names/entities"}},
		{"repairs invalid UTF-8", inEntity(func(s string) string { return strings.ToValidUTF8(s, "\ufffd") }), []string{"names/entities"}},
		{"normalizes Unicode", inEntity(func(s string) string { return strings.ReplaceAll(s, "e\u0301", "é") }), []string{"names/entities"}},
		{"ends names at NUL", inEntity(func(s string) string { return strings.SplitN(s, "\x00", 2)[0] }), []string{"names/entities"}},
		{"unescapes", inEntity(func(s string) string { return strings.ReplaceAll(s, "%2F", "/") }), []string{"names/entities"}},
		{"cuts long names", inEntity(func(s string) string { return s[:min(len(s), 2048)] }), []string{"names/entities"}},
		{"cuts very long names", inEntity(func(s string) string { return s[:min(len(s), 1<<20-1)] }), []string{"names/entities"}},
		{"keeps a prefix and a hash of long names that short names can equal", inEntity(func(s string) string {
			if forms := storedForms(strings.Repeat("k", 3<<10)); s == forms[6] {
				return strings.Repeat("k", 3<<10)
			}
			return s
		}), []string{"names/entities"}},
		{"folds case of resources", renaming(func(k limiter.BucketKey) limiter.BucketKey {
			k.Resource = strings.ToLower(k.Resource)
			return k
		}), []string{"names/resources"}},
		{"has one namespace", renaming(func(k limiter.BucketKey) limiter.BucketKey {
			k.Namespace = ""
			return k
		}), []string{"names/namespaces"}},
		{"joins the parts of a key", renaming(func(k limiter.BucketKey) limiter.BucketKey {
			return limiter.BucketKey{Entity: k.Namespace + "/" + k.Entity + "#" + k.Resource, Variant: k.Variant, Window: k.Window}
		}), []string{"names/parts swapped"}},
		{"has no variants", renaming(func(k limiter.BucketKey) limiter.BucketKey {
			k.Variant = 0
			return k
		}), []string{"names/variants"}},
		{"has one bucket for all windows", renaming(func(k limiter.BucketKey) limiter.BucketKey {
			k.Window = limiter.Window{}
			return k
		}), []string{"limiter/quotas"}},
		{"gives back to the first bucket alone", breakTake(func(ctx context.Context, r *reference, now time.Time, ops []limiter.Op) (bool, error) {
			if ops[0].Spends[0].Refund > 0 {
				ops = ops[:1]
			}
			return r.Take(ctx, now, ops)
		}), []string{"limiter/in flight"}},
		{"has one bucket for the windows that begin together", renaming(func(k limiter.BucketKey) limiter.BucketKey {
			k.Window.End, k.Window.Calendar = 0, 0
			return k
		}), []string{"limiter/quotas"}},
		{"keeps the caller's strings", func(r *reference) limiter.Store {
			numbers := make(map[limiter.BucketKey]uint64)
			return renaming(func(k limiter.BucketKey) limiter.BucketKey {
				if _, ok := numbers[k]; !ok {
					numbers[k] = uint64(len(numbers))
				}
				return limiter.BucketKey{Variant: numbers[k]}
			})(r)
		}, []string{"names/memory of the caller"}},
		{"folds case of records", func(r *reference) limiter.Store { return foldingCatalog{r} }, []string{"names/records"}},
	}
}

func brokenSpends() []broken {
	return []broken{
		{"wants a millitoken more than it takes", respending(func(_ limiter.Op, sp *limiter.Spend) {
			if sp.Take > 0 {
				sp.Take++
			}
		}), []string{"spend/take", "retry/first millisecond", "limiter/a store that hangs"}},
		{"takes at a peek", respending(func(_ limiter.Op, sp *limiter.Spend) {
			if sp.Look {
				sp.Take = max(sp.Take, limiter.Milli)
			}
		}), []string{"spend/order", "spend/peek creates nothing"}},
		{"nets before the capacity cuts, wrongly", respending(func(_ limiter.Op, sp *limiter.Spend) {
			if sp.Refund > 0 && sp.Charge > 0 {
				sp.Refund = 0
			}
		}), []string{"spend/order"}},
		{"never takes more than the capacity", respending(func(op limiter.Op, sp *limiter.Spend) {
			if i := op.Limits.Find(sp.Limit); i >= 0 && !op.Limits.At(i).Unlimited {
				sp.Take = min(sp.Take, op.Limits.Params(i).Capacity)
			}
		}), []string{"spend/order", "retry/never"}},
		{"counts charges in 40 bits", respending(func(_ limiter.Op, sp *limiter.Spend) { sp.Charge &= 1<<40 - 1 }), []string{"spend/extreme limits"}},
		{"loses the remainder", breakTake(func(ctx context.Context, r *reference, now time.Time, ops []limiter.Op) (bool, error) {
			admitted, err := r.Take(ctx, now, ops)
			r.eachBalance(ops, func(_ *refBucket, t *refBalance) { t.tokens = new(big.Rat).SetInt(floor(t.tokens)) })
			return admitted, err
		}), []string{"spend/remainder is kept", "lockstep/buckets"}},
		{"checks the first limit only", breakTake(func(ctx context.Context, r *reference, now time.Time, ops []limiter.Op) (bool, error) {
			cut := append([]limiter.Op(nil), ops...)
			for i := range cut {
				cut[i].Spends = cut[i].Spends[:1]
			}
			return r.Take(ctx, now, cut)
		}), []string{"spend/several limits"}},
		{"does not say which limit denied", breakTake(func(ctx context.Context, r *reference, now time.Time, ops []limiter.Op) (bool, error) {
			admitted, err := r.Take(ctx, now, ops)
			for i := range ops {
				for j := range ops[i].Spends {
					ops[i].Spends[j].Exceeded = false
				}
			}
			return admitted, err
		}), []string{"spend/order", "limiter/a storm of denials"}},
		{"keeps old results of a spend that is not held", breakTake(func(ctx context.Context, r *reference, now time.Time, ops []limiter.Op) (bool, error) {
			held := make(map[*limiter.Spend]bool)
			for i := range ops {
				for j := range ops[i].Spends {
					held[&ops[i].Spends[j]] = ops[i].Spends[j].Held
				}
			}
			admitted, err := r.Take(ctx, now, ops)
			for sp, before := range held {
				sp.Held = sp.Held || before
			}
			return admitted, err
		}), []string{"spend/results are set"}},
	}
}

// eachBalance calls fn for every balance of the ops' buckets.
func (r *reference) eachBalance(ops []limiter.Op, fn func(*refBucket, *refBalance)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range ops {
		if b := r.buckets[ops[i].Bucket]; b != nil {
			for _, t := range b.held {
				fn(b, t)
			}
		}
	}
}

func brokenDecisions() []broken {
	return []broken{
		{"omits refunds", breakTake(func(ctx context.Context, r *reference, now time.Time, ops []limiter.Op) (bool, error) {
			for i := range ops {
				if admitted, err := r.Take(ctx, now, ops[i:i+1]); err != nil || !admitted {
					return false, err
				}
			}
			return true, nil
		}), []string{"take/a denial takes nothing", "take/many buckets", "take/child and parents", "retry/several buckets", "limiter/children of one parent"}},
		{"charges nothing on a denial", breakTake(booksNothingOnDenial), []string{"take/charges and refunds of a denial", "spend/order"}},
		{"panics at amounts below zero", respending(func(_ limiter.Op, sp *limiter.Spend) {
			_ = make([]byte, min(sp.Take, 1)) // a length below zero panics
		}), []string{"take/amounts out of range"}},
		{"locks buckets in the caller's order", func(r *reference) limiter.Store {
			l := &callersOrder{locks: make(map[limiter.BucketKey]chan struct{})}
			return breakTake(l.take)(r)
		}, []string{"take/opposite orders", "take/rings"}},
		{"checks, then acts", breakTake(checksThenActs), []string{"window/exactly the balance", "linearizable", "limiter/faults"}},
		{"repeats uncertain calls", breakTake(func(ctx context.Context, r *reference, now time.Time, ops []limiter.Op) (bool, error) {
			f := NewFaulty(r, Script(Take, FailAfter))
			admitted, err := f.Take(ctx, now, ops)
			if errors.Is(err, limiter.ErrUncertain) {
				return f.Take(ctx, now, ops)
			}
			return admitted, err
		}), []string{"spend/take", "window/exactly the balance"}},
	}
}

func booksNothingOnDenial(ctx context.Context, r *reference, now time.Time, ops []limiter.Op) (bool, error) {
	takes := append([]limiter.Op(nil), ops...)
	for i := range takes {
		takes[i].Spends = append([]limiter.Spend(nil), ops[i].Spends...)
		for j := range takes[i].Spends {
			takes[i].Spends[j].Charge = takes[i].Spends[j].Refund
		}
	}
	if admitted, err := r.Take(ctx, now, takes); err != nil || !admitted {
		return false, err
	}
	for i := range takes {
		for j := range takes[i].Spends {
			takes[i].Spends[j] = ops[i].Spends[j]
			takes[i].Spends[j].Take, takes[i].Spends[j].Look = 0, false
		}
	}
	return r.Take(ctx, now, takes)
}

// checksThenActs checks the balances, and then takes without another check.
func checksThenActs(ctx context.Context, r *reference, now time.Time, ops []limiter.Op) (bool, error) {
	probe := append([]limiter.Op(nil), ops...)
	for i := range probe {
		probe[i].Spends = append([]limiter.Spend(nil), ops[i].Spends...)
		for j := range probe[i].Spends {
			probe[i].Spends[j].Take, probe[i].Spends[j].Charge, probe[i].Spends[j].Refund = 0, 0, 0
		}
	}
	if _, err := r.Take(ctx, now, probe); err != nil {
		return false, err
	}
	for i := range probe {
		for j, sp := range probe[i].Spends {
			if sp.Bucket.Tokens < ops[i].Spends[j].Take {
				return r.Take(ctx, now, ops)
			}
			probe[i].Spends[j].Charge = ops[i].Spends[j].Take
		}
	}
	runtime.Gosched()
	_, err := r.Take(ctx, now, probe)
	return true, err
}

// callersOrder locks each bucket, in the order in which the caller names them.
type callersOrder struct {
	mu    sync.Mutex
	locks map[limiter.BucketKey]chan struct{}
}

func (l *callersOrder) lock(k limiter.BucketKey) chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.locks[k] == nil {
		l.locks[k] = make(chan struct{}, 1)
	}
	return l.locks[k]
}

func (l *callersOrder) take(ctx context.Context, r *reference, now time.Time, ops []limiter.Op) (bool, error) {
	for i := range ops {
		lock := l.lock(ops[i].Bucket)
		select {
		case lock <- struct{}{}:
			defer func() { <-lock }()
		case <-ctx.Done():
			return false, limiter.ErrUnavailable
		}
		runtime.Gosched()
	}
	return r.Take(ctx, now, ops)
}

func brokenClocks() []broken {
	return []broken{
		{"refills from a time that moves back", breakTake(func(ctx context.Context, r *reference, now time.Time, ops []limiter.Op) (bool, error) {
			r.eachBalance(ops, func(_ *refBucket, t *refBalance) { t.at = min(t.at, now.UnixMilli()) })
			return r.Take(ctx, now, ops)
		}), []string{"spend/refill", "window/unsteady clocks", "window/a clock that runs backwards", "lockstep/any clock", "linearizable"}},
		{"never moves the time of its refill", breakTake(func(ctx context.Context, r *reference, now time.Time, ops []limiter.Op) (bool, error) {
			admitted, err := r.Take(ctx, now, ops)
			r.eachBalance(ops, func(_ *refBucket, t *refBalance) { t.at = epoch })
			return admitted, err
		}), []string{"spend/refill", "window/unsteady clocks", "linearizable"}},
		{"counts nanoseconds in 64 bits", breakTake(func(ctx context.Context, r *reference, now time.Time, ops []limiter.Op) (bool, error) {
			return r.Take(ctx, time.Unix(0, now.UnixNano()), ops)
		}), []string{"window/far times"}},
		{"rounds the time up", breakTake(func(ctx context.Context, r *reference, now time.Time, ops []limiter.Op) (bool, error) {
			return r.Take(ctx, now.Add(9*time.Millisecond).Truncate(10*time.Millisecond), ops)
		}), []string{"retry/first millisecond", "retry/several buckets"}},
	}
}

// brokenUse are stores that do not carry use over when limits change.
func brokenUse() []broken {
	return []broken{
		{"adds nothing when a limit is raised", breakTake(func(ctx context.Context, r *reference, now time.Time, ops []limiter.Op) (bool, error) {
			r.eachBalance(ops, func(_ *refBucket, t *refBalance) {
				t.refill(now.UnixMilli())
				if !t.unused() {
					t.use.Add(t.use, milli(10_000))
				}
			})
			return r.Take(ctx, now, ops)
		}), []string{"change/a raised limit frees callers", "change/numbers", "change/use after a lowered limit", "lockstep/buckets"}},
		{"drops the use that a lowered limit carries", breakTake(func(ctx context.Context, r *reference, now time.Time, ops []limiter.Op) (bool, error) {
			r.eachBalance(ops, func(_ *refBucket, t *refBalance) {
				t.refill(now.UnixMilli())
				t.use = milli(t.limit.Capacity)
				t.use.Sub(t.use, t.tokens)
			})
			return r.Take(ctx, now, ops)
		}), []string{"change/to and fro", "change/use after a lowered limit", "lockstep/buckets"}},
	}
}

func brokenChanges() []broken {
	return []broken{
		{"starts over when limits change", breakTake(func(ctx context.Context, r *reference, now time.Time, ops []limiter.Op) (bool, error) {
			r.eachBucket(ops, func(op limiter.Op, b *refBucket) {
				if op.Generation > b.generation && op.Limits.Hash() != b.limits.Hash() {
					delete(r.buckets, op.Bucket)
				}
			})
			return r.Take(ctx, now, ops)
		}), []string{
			"change/numbers", "change/refill before the change", "change/removed and added again", "change/unlimited and back",
			"change/flapping", "change/added and removed", "change/debt floor", "change/while callers take", "limiter/changes at one instant",
			"change/a raised limit frees callers", "change/to and fro", "change/use after a lowered limit",
		}},
		{"drops dormant limits", breakTake(func(ctx context.Context, r *reference, now time.Time, ops []limiter.Op) (bool, error) {
			admitted, err := r.Take(ctx, now, ops)
			r.eachBalance(ops, func(b *refBucket, t *refBalance) {
				if t.dormant {
					delete(b.held, t.limit.Name)
				}
			})
			return admitted, err
		}), []string{
			"change/removed and added again", "change/unlimited and back", "change/flapping", "change/while callers take", "lockstep/buckets",
			"change/names that come and go", "change/more names than are remembered",
		}},
		{"applies older limits", breakTake(func(ctx context.Context, r *reference, now time.Time, ops []limiter.Op) (bool, error) {
			r.eachBucket(ops, func(_ limiter.Op, b *refBucket) { b.generation = 0 })
			return r.Take(ctx, now, ops)
		}), []string{"change/older after newer", "change/versions of one generation", "change/older than the same limits seen again", "change/added and removed"}},
		{"does not note that limits were seen again", breakTake(func(ctx context.Context, r *reference, now time.Time, ops []limiter.Op) (bool, error) {
			before := make(map[limiter.BucketKey]version)
			r.eachBucket(ops, func(op limiter.Op, b *refBucket) { before[op.Bucket] = version{b.limits, b.generation} })
			admitted, err := r.Take(ctx, now, ops)
			r.eachBucket(ops, func(op limiter.Op, b *refBucket) {
				if v, ok := before[op.Bucket]; ok && v.limits == b.limits {
					b.generation = v.generation
				}
			})
			return admitted, err
		}), []string{"change/older than the same limits seen again"}},
		{"never changes limits", breakTake(func(ctx context.Context, r *reference, now time.Time, ops []limiter.Op) (bool, error) {
			r.eachBucket(ops, func(_ limiter.Op, b *refBucket) { b.generation = 1 << 63 })
			return r.Take(ctx, now, ops)
		}), []string{"change/numbers", "change/added and removed", "change/debt floor"}},
	}
}

// eachBucket calls fn for every op whose bucket exists.
func (r *reference) eachBucket(ops []limiter.Op, fn func(limiter.Op, *refBucket)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range ops {
		if b := r.buckets[ops[i].Bucket]; b != nil {
			fn(ops[i], b)
		}
	}
}
