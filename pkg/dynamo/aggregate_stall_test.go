package dynamo_test

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
)

// behind returns the same table behind a proxy.
func (f *fed) behind(t *testing.T) (*fed, *dynamotest.Proxy) {
	t.Helper()
	proxy := dynamotest.NewProxy(t, f.endpoint, nil)
	client, err := dynamo.NewClient(t.Context(), dynamo.ClientConfig{Endpoint: proxy.URL})
	if err != nil {
		t.Fatal(err)
	}
	streams, err := dynamo.NewStreamsClient(t.Context(), dynamo.ClientConfig{Endpoint: f.endpoint})
	if err != nil {
		t.Fatal(err)
	}
	far := &fed{endpoint: proxy.URL, client: client, table: f.table}
	if far.stream, err = dynamo.OpenStream(t.Context(), client, streams, f.table, nil); err != nil {
		t.Fatal(err)
	}
	return far, proxy
}

// Three replicas are stopped cleanly while the table answers nothing, and two aggregators count their usage.
// When it answers again all usage is there that no replica counts as lost.
func TestUsageOfAStopInAStall(t *testing.T) {
	t.Parallel()
	for name, lasts := range map[string]time.Duration{"longer than the stop": 6 * time.Second, "much shorter": 500 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFed(t)
			far, proxy := f.behind(t)
			ctx, stop := context.WithCancel(t.Context())
			var processes, stops sync.WaitGroup
			for i := range 2 {
				processes.Go(func() { far.aggregate(ctx, t, fmt.Sprint("aggregator ", i), nil) })
			}
			stores := make([]*dynamo.Store, 3)
			for i := range stores {
				stores[i] = newStore(t, far.client, func(cfg *dynamo.Config) { cfg.Table, cfg.Leases = f.table, true })
			}
			used := takenIn(t, 3*time.Second, stores)
			gate := dynamofake.NewGate()
			proxy.SetPlan(func(dynamofake.Call) dynamofake.Fault {
				return dynamofake.Fault{Kind: dynamofake.HoldRequest, Gate: gate}
			})
			stops.Go(func() {
				wait(t, lasts)
				proxy.SetPlan(nil)
				gate.Release()
			})
			for _, s := range stores {
				stops.Go(func() { stopIn(t, s, 5*time.Second) })
			}
			stops.Wait()
			reader := newStore(t, f.client, func(cfg *dynamo.Config) { cfg.Table = f.table })
			defer closing(t, reader)
			lost := lostOf(stores)
			waitFor(t, func() bool {
				missing := used - total(listed(t, reader, limiter.UsageHour))
				return missing >= 0 && missing <= lost
			})
			t.Logf("used %d, counted %d, lost %d at most", used, total(listed(t, reader, limiter.UsageHour)), lost)
			stop()
			processes.Wait()
		})
	}
}

// takenIn has stores take from a bucket for a while, and returns the admissions.
func takenIn(t *testing.T, lasts time.Duration, stores []*dynamo.Store) (sum int64) {
	t.Helper()
	ctx, end := context.WithTimeout(t.Context(), lasts)
	defer end()
	admitted := make([]int64, len(stores))
	var work sync.WaitGroup
	for i, s := range stores {
		work.Go(func() {
			all := takeUntil(ctx, t, s, uint64(i)) // #nosec G115 -- small
			_, admitted[i] = all.since(time.Now())
		})
	}
	work.Wait()
	for _, n := range admitted {
		sum += n
	}
	return sum
}

// stopIn stops a store, which must end by its time.
func stopIn(t *testing.T, s *dynamo.Store, within time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), within)
	defer cancel()
	began := time.Now()
	err := s.Close(ctx)
	if took := time.Since(began); took > within+2*time.Second { // of a busy machine
		t.Errorf("the stop takes %v of %v", took, within)
	}
	if s.Stats().UsageLostStop > 0 && err == nil {
		t.Error("Close reports nothing of the usage that is lost")
	}
}

// lostOf returns the usage that stores count as lost, or perhaps lost.
func lostOf(stores []*dynamo.Store) (sum int64) {
	for _, s := range stores {
		got := s.Stats()
		sum += got.UsageLostStop + got.UsageLostOutage + got.UsageLostReply + got.UsageLostDeleted
	}
	return sum
}

func total(used map[string]int64) (sum int64) {
	for n := range maps.Values(used) {
		sum += n
	}
	return sum
}

// wait waits for a while, unless the test ends before.
func wait(t *testing.T, d time.Duration) {
	t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
	}
}
