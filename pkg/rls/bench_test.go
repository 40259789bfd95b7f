package rls_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/rls"
)

// load is a client with calls to make.
type load struct {
	requests []*rlsv3.RateLimitRequest
	clients  []rlsv3.RateLimitServiceClient
}

// Workers and connections of a load: an Envoy of two threads under pressure.
const (
	loadWorkers     = 64
	loadConnections = 2
	loadRound       = 500 * time.Millisecond
)

func newLoad(tb testing.TB, register func(grpc.ServiceRegistrar), options ...grpc.ServerOption) *load {
	tb.Helper()
	l := &load{}
	for i := range 1000 {
		call := fmt.Sprintf(`{"domain":"bench","descriptors":[{"entries":[{"key":"api_key","value":"key-%d"},{"key":"model","value":"gpt-4"}]}]}`, i)
		l.requests = append(l.requests, fromJSON(tb, call, &rlsv3.RateLimitRequest{}))
	}
	for range loadConnections {
		l.clients = append(l.clients, rlsv3.NewRateLimitServiceClient(dial(tb, register, options...)))
	}
	return l
}

// newBenchService returns a service with an observer of its decisions; nil = none.
func newBenchService(tb testing.TB, observe func(time.Time, rls.Observation)) *rls.Service {
	tb.Helper()
	s, err := rls.New(rls.Config{
		Decider: newLimiter(tb, time.Now),
		Options: rls.Options{Headers: rls.Headers{RetryAfter: true, XRateLimit: true}},
		Observe: observe,
	})
	if err != nil {
		tb.Fatal(err)
	}
	own := limits(tb, limiter.Custom("rpm", 1_000_000_000, 1_000_000_000, time.Second))
	s.Reload(compile(tb, []descriptor.DomainSpec{{Domain: "bench", Rules: []descriptor.RuleSpec{
		{Name: "requests", Match: match("api_key", "*", "model", "*"), Takes: takes("key/{api_key}", "{model}", own, "rpm")},
	}}}), nil)
	return s
}

// newServiceLoad returns a load on a service.
func newServiceLoad(tb testing.TB) *load {
	tb.Helper()
	return newLoad(tb, newBenchService(tb, nil).Register, rls.ServerOptions()...)
}

// round makes calls for loadRound, and counts them.
func (l *load) round(tb testing.TB) (calls int64) {
	tb.Helper()
	var all atomic.Int64
	var wg sync.WaitGroup
	start := time.Now()
	for w := range loadWorkers {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(w)))
			for time.Since(start) < loadRound {
				got, err := l.clients[w%len(l.clients)].ShouldRateLimit(tb.Context(), l.requests[r.IntN(len(l.requests))])
				if err != nil || got.GetOverallCode() != rlsv3.RateLimitResponse_OK {
					tb.Errorf("got %v, %v", got, err)
					return
				}
				all.Add(1)
			}
		})
	}
	wg.Wait()
	return all.Load()
}

func BenchmarkShouldRateLimit(b *testing.B) {
	l := newServiceLoad(b)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			if _, err := l.clients[i%len(l.clients)].ShouldRateLimit(b.Context(), l.requests[i%len(l.requests)]); err != nil {
				b.Error(err)
			}
		}
	})
}
