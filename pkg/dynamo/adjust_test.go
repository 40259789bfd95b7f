package dynamo_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
)

// adjusted is a fleet under load, whose bucket is adjusted.
type adjusted struct {
	*testing.T

	db       *dynamofake.DB
	stores   []*dynamo.Store
	links    []*link
	op       func() limiter.Op
	began    time.Time
	load     sync.WaitGroup
	stop     chan struct{}
	mu       sync.Mutex
	admitted []admission
	commits  []time.Time // of transactions
}

// admission is a token that was given.
type admission struct {
	store        int
	asked, given time.Time
}

// link is the way of a store to the table. Once it is cut no call is answered.
type link struct {
	dynamo.Client

	cut  atomic.Bool
	last atomic.Pointer[dynamodb.UpdateItemInput] // of the bucket
}

func (l *link) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	if pk, _ := in.Key[schema.AttrPK].(*types.AttributeValueMemberS); pk != nil && strings.Contains(pk.Value, "BUCKET#") {
		l.last.Store(in)
	}
	if l.cut.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return l.Client.UpdateItem(ctx, in, opts...)
}

func (l *link) GetItem(ctx context.Context, in *dynamodb.GetItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	if l.cut.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return l.Client.GetItem(ctx, in, opts...)
}

func (l *link) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	if l.cut.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return l.Client.BatchGetItem(ctx, in, opts...)
}

// newAdjusted returns three stores on one table, with callers that ask each for much more
// than the limit. Replies take 4 ms.
func newAdjusted(t *testing.T, l limiter.Limit, leases bool) *adjusted {
	return newLoaded(t, l, leases, func(f *adjusted, s *dynamo.Store) asker {
		return func(ctx context.Context, now time.Time) (bool, error) { return s.Take(ctx, now, []limiter.Op{f.op()}) }
	})
}

// asker asks a store for a token.
type asker func(ctx context.Context, now time.Time) (bool, error)

// newLoaded is newAdjusted with callers that ask in another way.
func newLoaded(t *testing.T, l limiter.Limit, leases bool, by func(*adjusted, *dynamo.Store) asker) *adjusted {
	f := &adjusted{T: t, db: newTable(t), began: time.Now(), stop: make(chan struct{})}
	f.op = func() limiter.Op { return op(t, "e", l, limiter.Spend{Take: tokens(1)}) }
	f.db.SetPlan(func(c dynamofake.Call) dynamofake.Fault {
		if c.Op == "TransactWriteItems" {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.commits = append(f.commits, time.Now())
		}
		return dynamofake.Fault{Latency: 4 * time.Millisecond}
	})
	for i := range 3 {
		f.links = append(f.links, &link{Client: f.db})
		f.stores = append(f.stores, newStore(t, f.links[i], func(c *dynamo.Config) { c.Leases, c.Attempt, c.Budget, c.PurgeWait = leases, 0, 0, 0 }))
		mustTake(t, f.stores[i], time.Now(), true, f.op()) // it finds the namespace
	}
	for i := range f.stores {
		ask := by(f, f.stores[i])
		for j := range 3 {
			f.load.Go(func() { f.call(i, ask, loadPause*time.Duration(1700+311*i+97*j)*time.Microsecond) })
		}
	}
	return f
}

// call asks a store for tokens, one after the other, until the load stops.
func (f *adjusted) call(store int, ask asker, pause time.Duration) {
	for {
		select {
		case <-f.stop:
			return
		case <-time.After(pause):
		}
		asked := time.Now()
		ctx, cancel := context.WithTimeout(f.Context(), 15*time.Millisecond)
		ok, err := ask(ctx, asked)
		cancel()
		if err != nil && !f.links[store].cut.Load() {
			f.Error(err)
		}
		if ok {
			f.mu.Lock()
			f.admitted = append(f.admitted, admission{store, asked, time.Now()})
			f.mu.Unlock()
		}
	}
}

// adjust makes an adjustment through the first store, and returns when it was committed.
func (f *adjusted) adjust(a limiter.Adjustment) (limiter.Adjusted, time.Time) {
	f.Helper()
	a.Bucket = f.op().Bucket
	began := time.Now()
	out, err := f.stores[0].AdjustBucket(f.Context(), began, a)
	if err != nil || !out.Found {
		f.Fatalf("%s: %+v, %v", a.Kind.Action(), out, err)
	}
	most := 3 * time.Second // each holder sees that its lease is asked for within 2.2 s
	if slices.ContainsFunc(f.links, func(l *link) bool { return l.cut.Load() }) {
		most = 4 * time.Second
	}
	if took := time.Since(began); took > most {
		f.Errorf("%s took %v, want at most %v", a.Kind.Action(), took, most)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return out, f.commits[len(f.commits)-1]
}

// since returns how many tokens were asked for and given after a time, up to another.
func (f *adjusted) since(from, to time.Time, stores ...int) (n int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range f.admitted {
		if a.asked.After(from) && !a.given.After(to) && (len(stores) == 0 || slices.Contains(stores, a.store)) {
			n++
		}
	}
	return n
}

// bounded requires that at any time after the commit no more was given than the balance and the
// refill. The balance is that of a time before the commit, by the few calls between.
func (f *adjusted) bounded(commit time.Time, balance int64) {
	f.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	n := int64(0)
	for _, a := range f.admitted {
		if !a.asked.After(commit) {
			continue
		}
		n++
		const between = 20 // ms
		if most := balance + adjustedRate*(a.given.Sub(commit).Milliseconds()+between); tokens(n) > most {
			f.Fatalf("%d tokens were given in %v from the adjustment on, want at most %d millitokens", n, a.given.Sub(commit), most)
		}
	}
}

// end stops the load and the stores.
func (f *adjusted) end() {
	close(f.stop)
	f.load.Wait()
	for _, l := range f.links {
		l.cut.Store(false)
	}
	closing(f.T, f.stores...)
}

const adjustedRate = 100 // millitokens in a ms, and tokens in a second

func adjustedLimit() limiter.Limit { return limiter.Custom("l", 1000, adjustedRate, time.Second) }

// A reset or a set through one replica is in force on all within 5 s. Their admissions
// together from it on are at most the new balance and the refill.
func TestResetsUnderLoad(t *testing.T) {
	for name, leases := range map[string]bool{"leases": true, "no leases": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newAdjusted(t, adjustedLimit(), leases)
				defer f.end()
				time.Sleep(3 * time.Second) // the bucket is used up
				steps := []limiter.Adjustment{{Kind: limiter.AdjustReset}, {Kind: limiter.AdjustSet, Tokens: tokens(700)}, {Kind: limiter.AdjustSet}}
				if !leases {
					steps = steps[:1] // each decision is a write
				}
				for _, a := range steps {
					began := time.Now()
					out, commit := f.adjust(a)
					time.Sleep(time.Until(began.Add(5 * time.Second)))
					f.bounded(commit, out.After.Limits[0].Tokens)
					want := out.After.Limits[0].Tokens / limiter.Milli
					if got := f.since(commit, time.Now()); got < want*9/10 {
						t.Errorf("%s: %d tokens were given within 5 s of the call, want nearly %d", a.Kind.Action(), got, want)
					}
					for i := range f.stores {
						if want > 0 && f.since(commit, time.Now(), i) == 0 {
							t.Errorf("%s: store %d gave no token within 5 s", a.Kind.Action(), i)
						}
					}
				}
			})
		})
	}
}

// A top-up is given once, also while there are leases, and a take-out is taken from the
// replicas' tokens too. Over all time they give the first balance, the refill and the
// difference.
func TestTopUpsUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newAdjusted(t, adjustedLimit(), true)
		defer f.end()
		time.Sleep(3 * time.Second)
		have := int64(1000)
		total := func() int64 { return f.since(time.Time{}, time.Now()) + 3 } // three were taken before
		for _, step := range []struct {
			kind   limiter.AdjustKind
			tokens int64
			gained int64
		}{{limiter.AdjustTopUp, 300, 300}, {limiter.AdjustTopUp, 900, 900}, {limiter.AdjustTakeOut, 250, -250}} {
			began := time.Now()
			a := limiter.Adjustment{Bucket: f.op().Bucket, Kind: step.kind, Tokens: tokens(step.tokens), Once: time.Now().String(), DryRun: true}
			if out, err := f.stores[0].AdjustBucket(t.Context(), began, a); err != nil || !out.Found || out.Before.Leases == 0 || time.Since(began) > time.Second {
				t.Errorf("a dry run of %s: %+v, %v after %v; want one beside leases that waits for none", a.Kind.Action(), out, err, time.Since(began))
			}
			a.DryRun = false
			if out, _ := f.adjust(a); !slices.Equal(out.Booked, []limiter.Booking{{Limit: "l", Tokens: tokens(step.gained)}}) {
				t.Errorf("%s of %d booked %+v", a.Kind.Action(), step.tokens, out.Booked)
			}
			have += step.gained
			time.Sleep(time.Until(began.Add(7 * time.Second))) // a debt is made up for by then
			most := have + adjustedRate*time.Since(f.began).Milliseconds()/1000
			if got := total(); got > most || got < most*97/100 {
				t.Errorf("%s of %d: %d tokens were given in all, want nearly %d", step.kind.Action(), step.tokens, got, most)
			}
		}
	})
}

// The leases of a replica that is gone count as full: a reset does not wait for their end, and
// tokens that their holder still gives are within the bound.
func TestResetBesideADeadHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newAdjusted(t, adjustedLimit(), true)
		defer f.end()
		time.Sleep(3 * time.Second)
		f.links[2].cut.Store(true)
		began := time.Now()
		out, commit := f.adjust(limiter.Adjustment{})
		time.Sleep(time.Until(began.Add(5 * time.Second)))
		balance := out.After.Limits[0]
		if balance.Leased == 0 || balance.Tokens+balance.Leased != tokens(1000) {
			t.Errorf("the balance is %+v, want 1000 tokens with those of the lease", balance)
		}
		if got := f.since(commit, time.Now(), 0, 1); got < balance.Tokens/limiter.Milli*9/10 {
			t.Errorf("%d tokens were given within 5 s of the call, want nearly %d", got, balance.Tokens/limiter.Milli)
		}
		time.Sleep(8 * time.Second)
		f.bounded(commit, tokens(1000))
	})
}
