package upgrade_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/ratelimit/ratelimit/test/envoytest"
)

// replica is a running program with a client.
type replica struct {
	*envoytest.Service

	client rlsv3.RateLimitServiceClient
}

func newReplica(t *testing.T, s *envoytest.Service) *replica {
	t.Helper()
	conn, err := grpc.NewClient(s.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &replica{s, rlsv3.NewRateLimitServiceClient(conn)}
}

// answer is the answer to a call.
type answer struct {
	key      string // of the descriptor
	from, to time.Duration
	admitted bool
	policy   bool // the store gave no decision
	failed   bool // no answer: the tokens may be taken
}

// ask asks for hits of a key, with a value.
func (r *replica) ask(ctx context.Context, began time.Time, key, value string, hits uint32) answer {
	a := answer{key: key, from: time.Since(began)}
	got, err := r.client.ShouldRateLimit(ctx, &rlsv3.RateLimitRequest{Domain: "d", HitsAddend: hits, Descriptors: []*ratelimitv3.RateLimitDescriptor{
		{Entries: []*ratelimitv3.RateLimitDescriptor_Entry{{Key: key, Value: value}}},
	}})
	a.to, a.failed = time.Since(began), err != nil
	a.admitted = got.GetOverallCode() == rlsv3.RateLimitResponse_OK
	a.policy = got.GetDynamicMetadata().GetFields()["degraded"] != nil
	return a
}

// load is calls at a rate, whatever the answers take, to the replicas that there are.
type load struct {
	began time.Time
	stop  context.CancelFunc
	work  sync.WaitGroup

	mu       sync.Mutex
	replicas []*replica
	answers  []answer
}

// startLoad begins calls of each key, every so often.
func startLoad(t *testing.T, every map[string]time.Duration) *load {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	l := &load{began: time.Now(), stop: stop}
	for key, pause := range every {
		l.work.Go(func() { l.run(ctx, t.Context(), key, pause) })
	}
	t.Cleanup(l.end)
	return l
}

// run makes the calls of one key until ctx ends.
func (l *load) run(ctx, calls context.Context, key string, pause time.Duration) {
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	begin := time.Since(l.began)
	for made := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		for ; begin+time.Duration(made)*pause <= time.Since(l.began); made++ {
			if r := l.any(); r != nil {
				l.work.Go(func() { l.note(r.ask(calls, l.began, key, "one", 1)) })
			}
		}
	}
}

// any returns one of the replicas by chance, nil for none.
func (l *load) any() *replica {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.replicas) == 0 {
		return nil
	}
	return l.replicas[rand.IntN(len(l.replicas))]
}

func (l *load) note(a answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answers = append(l.answers, a)
}

// add has calls made to a replica, too.
func (l *load) add(r *replica) *replica {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.replicas = append(l.replicas, r)
	return r
}

// remove has no more calls made to a replica.
func (l *load) remove(r *replica) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.replicas = slices.DeleteFunc(l.replicas, func(other *replica) bool { return other == r })
}

// end ends the calls, and waits for their answers.
func (l *load) end() {
	l.stop()
	l.work.Wait()
}
