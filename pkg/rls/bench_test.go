package rls_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/rls"
)

// noop answers every call with the same answer. The baseline is a server of default grpc-go around
// it.
type noop struct {
	rlsv3.UnimplementedRateLimitServiceServer
	answer *rlsv3.RateLimitResponse
}

func (n *noop) ShouldRateLimit(context.Context, *rlsv3.RateLimitRequest) (*rlsv3.RateLimitResponse, error) {
	return n.answer, nil
}

// load is a client with calls to make.
type load struct {
	requests []*rlsv3.RateLimitRequest
	clients  []rlsv3.RateLimitServiceClient
	calls    int // of the last round
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
	s.SetRules(compile(tb, []descriptor.DomainSpec{{Domain: "bench", Rules: []descriptor.RuleSpec{
		{Name: "requests", Match: match("api_key", "*", "model", "*"), Takes: takes("key/{api_key}", "{model}", own, "rpm")},
	}}}))
	return s
}

// newLoads returns a load on the service, and one on the baseline, which gives the same statuses
// and headers.
func newLoads(tb testing.TB) (service, yardstick *load) {
	tb.Helper()
	service = newLoad(tb, newBenchService(tb, nil).Register, rls.ServerOptions()...)
	answer, err := service.clients[0].ShouldRateLimit(tb.Context(), service.requests[0])
	if err != nil || len(answer.GetResponseHeadersToAdd()) != 3 || len(answer.GetStatuses()) != 1 {
		tb.Fatalf("got %v, %v", answer, err)
	}
	yardstick = newLoad(tb, func(r grpc.ServiceRegistrar) { rlsv3.RegisterRateLimitServiceServer(r, &noop{answer: answer}) })
	return service, yardstick
}

// round makes calls for loadRound. It returns the calls a second and the 99th percentile of their
// time, in seconds.
func (l *load) round(tb testing.TB) (rate, p99 float64) {
	tb.Helper()
	var all [loadWorkers][]time.Duration
	var wg sync.WaitGroup
	start := time.Now()
	for w := range loadWorkers {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(w)))
			took := make([]time.Duration, 0, 1<<12)
			for begin := time.Now(); begin.Sub(start) < loadRound; {
				got, err := l.clients[w%len(l.clients)].ShouldRateLimit(tb.Context(), l.requests[r.IntN(len(l.requests))])
				if err != nil || got.GetOverallCode() != rlsv3.RateLimitResponse_OK {
					tb.Errorf("got %v, %v", got, err)
					return
				}
				end := time.Now()
				took = append(took, end.Sub(begin))
				begin = end
			}
			all[w] = took
		})
	}
	wg.Wait()
	elapsed := time.Since(start)
	took := slices.Concat(all[:]...)
	if len(took) == 0 {
		tb.Fatal("no call was answered")
	}
	slices.Sort(took)
	l.calls = len(took)
	return float64(len(took)) / elapsed.Seconds(), took[len(took)*99/100].Seconds()
}

func BenchmarkShouldRateLimit(b *testing.B) {
	service, yardstick := newLoads(b)
	for name, l := range map[string]*load{"service": service, "noop": yardstick} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for i := 0; pb.Next(); i++ {
					if _, err := l.clients[i%len(l.clients)].ShouldRateLimit(b.Context(), l.requests[i%len(l.requests)]); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}
