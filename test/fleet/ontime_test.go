package fleet_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/envoytest"
	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
	"github.com/ratelimit/ratelimit/test/kit/windows"
)

// The load of TestColdAtThreeTimesTheLimit.
const (
	onTimeReplicas = 3
	onTimeRate     = 500 // tokens a second, and the burst
	onTimeFor      = 6 * time.Second
	onTimeLearns   = time.Second // after which no policy may decide
)

// onTimeCall is a call of a client, in time since the load began.
type onTimeCall struct {
	from, to               time.Duration
	admitted, late, policy bool
	err                    error
}

// Three programs with the shipped defaults, which have just started, are asked for three
// times the rate of a limit. The requests let through, however they were decided, are at
// most B + r·t and at least nine tenths of it. After a second no policy decides.
func TestColdAtThreeTimesTheLimit(t *testing.T) {
	server := dynamotest.Start(t)
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local", "AWS_REGION": "local"} {
		t.Setenv(name, value)
	}
	if err := envoytest.BuildPrograms(t.Context(), t.TempDir()); err != nil {
		t.Fatal(err)
	}
	for _, lease := range []string{"auto", "none"} {
		t.Run("lease "+lease, func(t *testing.T) {
			clients := startPrograms(t, server.URL, lease)
			calls := askOpenly(t, clients)
			checkOnTime(t, calls)
		})
	}
}

// startPrograms starts the programs on a table of their own, and returns a client of each.
func startPrograms(t *testing.T, endpoint, lease string) []rlsv3.RateLimitServiceClient {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ratelimit.yaml")
	config := fmt.Sprintf(`
store: {type: dynamodb, dynamodb: {table: %s, region: local, endpoint: %q, create_table: true}}
domains:
- domain: d
  rules:
  - {match: {key: "*"}, entity: "key/{key}", resource: r, limits: {n: {rate: %d/second, burst: %d}}, consume: {n: hits}, lease: %s}
`, dynamotest.TableName(t), endpoint, onTimeRate, onTimeRate, lease)
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	clients := make([]rlsv3.RateLimitServiceClient, 0, onTimeReplicas)
	for range onTimeReplicas {
		s := envoytest.StartService(t, path, "", "")
		conn, err := grpc.NewClient(s.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		clients = append(clients, rlsv3.NewRateLimitServiceClient(conn))
	}
	return clients
}

// askOpenly makes calls at three times the rate, however long answers take, to the programs
// in turn.
func askOpenly(t *testing.T, clients []rlsv3.RateLimitServiceClient) []onTimeCall {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	const every = time.Second / (3 * onTimeRate)
	var wg sync.WaitGroup
	calls := make([]onTimeCall, onTimeFor/every)
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	began := time.Now()
	for i := 0; i < len(calls); {
		<-ticker.C
		for ; i < len(calls) && time.Duration(i)*every <= time.Since(began); i++ {
			call, client := &calls[i], clients[i%len(clients)]
			wg.Go(func() { *call = askOnce(ctx, client, began) })
		}
	}
	wg.Wait()
	return calls
}

func askOnce(ctx context.Context, client rlsv3.RateLimitServiceClient, began time.Time) onTimeCall {
	c := onTimeCall{from: time.Since(began)}
	answer, err := client.ShouldRateLimit(ctx, &rlsv3.RateLimitRequest{Domain: "d", Descriptors: []*ratelimitv3.RateLimitDescriptor{
		{Entries: []*ratelimitv3.RateLimitDescriptor_Entry{{Key: "key", Value: "hot"}}},
	}})
	c.to, c.err = time.Since(began), err
	metadata := answer.GetDynamicMetadata().GetFields()
	c.admitted = answer.GetOverallCode() == rlsv3.RateLimitResponse_OK
	c.late, c.policy = metadata["late"].GetBoolValue(), metadata["degraded"] != nil
	return c
}

// checkOnTime compares the requests that were let through with the bound.
func checkOnTime(t *testing.T, calls []onTimeCall) {
	t.Helper()
	var admitted, late, policy, policyLater int64
	var all []windows.Taking
	end := time.Duration(0)
	for _, c := range calls {
		if c.err != nil {
			t.Fatal(c.err)
		}
		end = max(end, c.to)
		if c.late {
			late++
		}
		if c.policy {
			policy++
			if c.from >= onTimeLearns {
				policyLater++
			}
		}
		if c.admitted {
			admitted++
			all = append(all, windows.Taking{From: c.from.Microseconds(), To: c.to.Microseconds() + 1, Amount: limiter.Milli})
		}
	}
	found, err := windows.Check(limiter.PerSecond("n", onTimeRate).Params(), all, 0)
	if err != nil {
		t.Fatal(err)
	}
	most := onTimeRate + int64(onTimeRate*end.Seconds())
	t.Logf("%d calls in %v: %d let through of at most %d, %d late, %d by policy, of them %d after %v; worst window: %v",
		len(calls), end.Round(time.Millisecond), admitted, most, late, policy, policyLater, onTimeLearns, found.Tightest)
	if admitted > most || admitted < most*9/10 {
		t.Errorf("%d calls let through, want %d to %d", admitted, most*9/10, most)
	}
	if policyLater > 0 {
		t.Errorf("%d calls decided by policy after %v, want none", policyLater, onTimeLearns)
	}
}
