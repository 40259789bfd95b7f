package envoytest_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ratelimit/ratelimit/test/envoytest"
	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
)

// 200 requests of one key run at the same time, each with an estimate of 1,000 tokens, and
// the bucket holds 100,000: exactly 100 pass. Each uses 400, so that 60,000 are left when all
// are settled. With token leases it may be fewer: one replica denies tokens that another
// holds.
func TestConcurrentRequests(t *testing.T) {
	for name, tc := range map[string]struct {
		start func(*testing.T, string) []*envoytest.Service
		lease string
	}{
		"embedded":              {startEmbedded, "none"},
		"dynamodb":              {startOnTable, "none"},
		"dynamodb, with leases": {startOnTable, "auto"},
	} {
		t.Run(name, func(t *testing.T) {
			envoytest.Need(t)
			rules := withLease(t, tc.lease, envoytest.WithoutRefill(t, example(t, "llm.ratelimit.yaml")))
			g := startGatewayWith(t, example(t, "llm-reserve-settle.yaml"), tc.start(t, rules)...)
			g.domain, g.entries = "llm-reserve-settle", []envoytest.Entry{{Key: "meter", Value: "reserve"}}
			concurrent(t, g, tc.lease == "none")
		})
	}
}

// withLease writes a file of rules anew, whose rules that reserve allow these leases.
func withLease(t *testing.T, lease, rules string) string {
	t.Helper()
	text, err := os.ReadFile(rules)
	if err != nil {
		t.Fatal(err)
	}
	const reserve = "    reserve: {tpm: hits}\n"
	if !strings.Contains(string(text), reserve) {
		t.Fatalf("no rule of the example reserves:\n%s", text)
	}
	return writeRules(t, strings.ReplaceAll(string(text), reserve, reserve+"    lease: "+lease+"\n"))
}

// startEmbedded starts the service with its own store.
func startEmbedded(t *testing.T, rules string) []*envoytest.Service {
	t.Helper()
	return []*envoytest.Service{envoytest.StartService(t, rules, "", "")}
}

// startOnTable starts two replicas of the service on one table of DynamoDB Local.
func startOnTable(t *testing.T, rules string) []*envoytest.Service {
	t.Helper()
	server := dynamotest.Start(t)
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local", "AWS_REGION": "local"} {
		t.Setenv(name, value)
	}
	text, err := os.ReadFile(rules)
	if err != nil {
		t.Fatal(err)
	}
	// DynamoDB Local is slower than DynamoDB.
	path := writeRules(t, fmt.Sprintf("store: {type: dynamodb, dynamodb: {table: %s, endpoint: %q, create_table: true}}\n"+
		"decision: {timeout: 9s, on_unavailable: deny}\n%s", dynamotest.TableName(t), server.URL, text))
	return []*envoytest.Service{
		envoytest.StartService(t, path, "", ""),
		envoytest.StartService(t, path, "", ""),
	}
}

// concurrent sends 200 requests, of which none ends before all are decided; then all end
// at once. If exact, as many pass as the bucket has tokens for. Otherwise fewer may pass,
// and then the tokens of the others are left in the bucket.
func concurrent(t *testing.T, g *gateway, exact bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	requests := g.hold(ctx, "all", 200)
	const stats = "cluster.upstream.ratelimit."
	envoytest.Await(t, "all requests are decided", func() error {
		got := g.envoy.Stats(t, stats)
		if decided := got[stats+"ok"] + got[stats+"over_limit"] + got[stats+"error"]; decided != 200 {
			return fmt.Errorf("decided: got %d, want 200", decided)
		}
		return nil
	})
	passed := 100
	if !exact {
		passed = int(g.envoy.Stats(t, stats)[stats+"ok"])
	}
	g.awaitTokens(t, "alice", 1000*passed)
	g.upstream.Release(t, requests.name)
	if err := requests.group.Wait(); err != nil {
		t.Fatal(err)
	}
	if got, denied := int(requests.passed.Load()), int(requests.denied.Load()); got != passed || denied != 200-passed || passed > 100 {
		t.Errorf("of 200 requests: got %d passed and %d denied, want %d, at most 100, and %d", got, denied, passed, 200-passed)
	}
	g.awaitReturns(t)
	awaitAndStay(t, "each is settled once", func() error {
		if err := g.wantCalls(t, 200+passed); err != nil {
			return err
		}
		return g.wantSettled(t, passed)
	})
	wantNothingLost(t, g.envoy, 200)
}

// awaitReturns waits until the replicas have held nothing on lease for a second: one does not
// see the leases of another.
func (g *gateway) awaitReturns(t *testing.T) {
	t.Helper()
	var since time.Time
	envoytest.Await(t, "all leases are returned", func() error {
		if leases := g.counted(t, "ratelimit_dynamodb_leases"); leases > 0 || since.IsZero() {
			since = time.Now()
		}
		if held := time.Since(since); held < time.Second {
			return fmt.Errorf("without a lease: got %v, want a second", held)
		}
		return nil
	})
}

// wantSettled returns an error unless that many reservations of 1,000 tokens are settled
// to 400, each once: at once, or later, where the store did not answer in time.
func (g *gateway) wantSettled(t *testing.T, want int) error {
	t.Helper()
	const counter = "ratelimit_settlements_total{"
	if got := g.counted(t, counter, `result="settled"`) + g.counted(t, counter, `result="kept"`); got != want {
		return fmt.Errorf("settlements: got %d, want %d", got, want)
	}
	return g.wantUsed("alice", 400*want)
}

// heldRequests are requests that the upstream answers when they are released.
type heldRequests struct {
	name           string
	group          errgroup.Group
	passed, denied atomic.Int64
}

// hold sends n requests of one key, every second of which is streamed.
func (g *gateway) hold(ctx context.Context, name string, n int) *heldRequests {
	held := &heldRequests{name: name}
	for i := range n {
		body := `{"max_tokens": 1000}`
		if i%2 == 1 {
			body = `{"max_tokens": 1000, "stream": true, "stream_options": {"include_usage": true}}`
		}
		held.group.Go(func() error {
			code, err := g.code(ctx, "alice", question{body, map[string]string{"x-total-tokens": "400", "x-hold": name}})
			switch {
			case err != nil:
				return err
			case code == http.StatusOK:
				held.passed.Add(1)
			case code == http.StatusTooManyRequests:
				held.denied.Add(1)
			default:
				return fmt.Errorf("got %d, want 200 or 429", code)
			}
			return nil
		})
	}
	return held
}

// code sends a question and returns the code of its answer, when that is complete.
func (g *gateway) code(ctx context.Context, key string, q question) (int, error) {
	response, err := g.post(ctx, key, q)
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := envoytest.Read(response)
	return answer.Code, err
}
