package dynamo_test

import (
	"crypto/rand"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
)

// flights is requests of three processes that begin and end.
type flights struct {
	limit    int64
	limiters []*limiter.Limiter
	began    time.Time

	now, most atomic.Int64 // in flight
	time      atomic.Int64 // of all requests that ended, in ms
}

// Three processes that want more in flight than the limit get all of it, and never more, while windows
// begin and end. When two of them stop asking the third gets all of it.
func TestInFlightOverProcesses(t *testing.T) {
	for _, mode := range []struct {
		name   string
		change func(*dynamo.Config)
	}{{"lease: none", nil}, {"leases", withLeases}} {
		for _, limit := range []int64{5, 50} {
			t.Run(fmt.Sprint(mode.name, "/", limit), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { flyOverProcesses(t, limit, mode.change) })
			})
		}
	}
}

func flyOverProcesses(t *testing.T, limit int64, change func(*dynamo.Config)) {
	t.Helper()
	db := newTable(t)
	f := flights{limit: limit}
	stores := make([]*dynamo.Store, 0, 3)
	set, err := limiter.NewLimits(limiter.Concurrent("slots", limit, 10*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	for range cap(stores) {
		s := newStore(t, db, change)
		l, err := limiter.New(limiter.Config{Store: s})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.SetStatic(t.Context(), limiter.Static{System: set}); err != nil {
			t.Fatal(err)
		}
		stores, f.limiters = append(stores, s), append(f.limiters, l)
	}
	defer closing(t, stores...)
	db.SetPlan(func(dynamofake.Call) dynamofake.Fault { return dynamofake.Fault{Latency: 4 * time.Millisecond} })
	f.began = time.Now()
	all := f.run(t, f.limiters, 25*time.Second)
	one := f.run(t, f.limiters[:1], 15*time.Second)
	t.Logf("%d at most of %d, %.3f of it in use by three, %.3f by one; %+v", f.most.Load(), limit, all, one, stores[0].Stats())
	if f.most.Load() > limit {
		t.Errorf("%d in flight, want at most %d", f.most.Load(), limit)
	}
	if all < 0.85 || one < 0.85 {
		t.Errorf("%.3f and %.3f of the limit is in use, want nearly all", all, one)
	}
}

// run has some processes ask for twice the limit, and returns which part of the limit is in use.
func (f *flights) run(t *testing.T, by []*limiter.Limiter, length time.Duration) float64 {
	t.Helper()
	f.time.Store(0)
	until := time.Now().Add(length)
	var callers sync.WaitGroup
	for i := range max(2*f.limit, 6) {
		callers.Go(func() {
			for time.Now().Before(until) {
				f.fly(t, by[i%int64(len(by))], time.Duration(300+i*37%400)*time.Millisecond)
			}
		})
	}
	callers.Wait()
	return float64(f.time.Load()) / float64(length.Milliseconds()) / float64(f.limit)
}

// fly begins a request and ends it, or waits a moment.
func (f *flights) fly(t *testing.T, l *limiter.Limiter, takes time.Duration) {
	t.Helper()
	now := func() time.Time { return t0().Add(time.Since(f.began)) }
	req := &limiter.Request{OnUnavailable: limiter.Deny, Takes: []limiter.Take{{Entity: "e", Resource: "r", Consume: []limiter.Consumption{{Limit: "slots", Amount: tokens(1)}}}}}
	var d limiter.Decision
	if err := l.Decide(t.Context(), now(), req, &d); err != nil {
		t.Error(err)
		return
	}
	if !d.Admitted {
		time.Sleep(250 * time.Millisecond)
		return
	}
	if n := f.now.Add(1); n > f.most.Load() {
		f.most.Store(n)
	}
	holdings := d.InFlight(nil, req)
	time.Sleep(takes)
	f.time.Add(takes.Milliseconds())
	f.now.Add(-1)
	mark := limiter.Mark{Namespace: limiter.DefaultNamespace, ID: rand.Text(), Owner: "a", Expires: now().Add(time.Minute)}
	if won, err := l.Settle(t.Context(), now(), mark, holdings, nil); err != nil || !won {
		t.Errorf("Settle: %t, %v", won, err)
	}
}
