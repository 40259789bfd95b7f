package envoytest_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ratelimit/ratelimit/test/envoytest"
)

// A limit that no test reaches, so that every answer must be 200. drain is longer
// than Envoy takes to see that a replica is about to stop: two checks of 1 s.
const plenty = `
drain: 4s
domains:
- domain: basic
  rules:
  - match: {api_key: "*"}
    entity: "key/{api_key}"
    resource: http
    limits: {requests: LIMIT/second}
    consume: {requests: hits}
`

// Two replicas are replaced one after the other while requests come in; none of
// them is lost, or passes without a decision.
func TestRollingRestartLosesNothing(t *testing.T) {
	envoytest.Need(t)
	rules := writeRules(t, strings.Replace(plenty, "LIMIT", "1000000", 1))
	replicas := []*envoytest.Service{
		envoytest.StartService(t, rules, "", ""),
		envoytest.StartService(t, rules, "", ""),
	}
	envoy := envoytest.StartEnvoy(t, patient(t, example(t, "basic.yaml")), envoytest.Ports{
		servicePort:  {replicas[0].GRPC, replicas[1].GRPC},
		upstreamPort: {startUpstream(t)},
	})
	awaitHealthy(t, envoy, 2)

	load := startLoad(t, envoy)
	for i, old := range replicas {
		before := load.answered()
		old.Stop(t)
		replicas[i] = envoytest.StartService(t, rules, old.GRPC, old.HTTP)
		awaitHealthy(t, envoy, 2)
		if load.answered() == before {
			t.Errorf("replica %d: no request came in while it was replaced", i)
		}
	}
	wantNothingLost(t, envoy, load.stop(t))
}

// The rules are replaced while requests come in, again and again; no request is
// lost, or passes without a decision.
func TestReloadLosesNothing(t *testing.T) {
	envoytest.Need(t)
	rules := writeRules(t, strings.Replace(plenty, "LIMIT", "1000000", 1))
	envoy, _ := startAll(t, patient(t, example(t, "basic.yaml")), rules)

	load := startLoad(t, envoy)
	for i := range 5 {
		limit := strconv.Itoa(2000000 + i)
		replaceFile(t, rules, strings.Replace(plenty, "LIMIT", limit, 1))
		envoytest.Await(t, "the new rules are in force", func() error {
			answer, err := envoy.Try("/", apiKey("probe"))
			if err != nil {
				return err
			}
			load.count.Add(1)
			if got, _, _ := strings.Cut(answer.Header.Get("x-ratelimit-limit"), ","); got != limit {
				return fmt.Errorf("x-ratelimit-limit: got %q, want %q", got, limit)
			}
			return nil
		})
	}
	wantNothingLost(t, envoy, load.stop(t))
}

// replaceFile replaces a file as editors and deployments do: with a rename.
func replaceFile(t *testing.T, path, text string) {
	t.Helper()
	next := filepath.Join(filepath.Dir(path), "next")
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, path); err != nil {
		t.Fatal(err)
	}
}

// awaitHealthy waits until Envoy sees n healthy replicas of the service.
func awaitHealthy(t *testing.T, envoy *envoytest.Envoy, n int) {
	t.Helper()
	envoytest.Await(t, "Envoy sees every replica", func() error {
		if got := envoy.Stats(t, "cluster.ratelimit.membership_healthy")["cluster.ratelimit.membership_healthy"]; got != int64(n) {
			return fmt.Errorf("healthy replicas: got %d, want %d", got, n)
		}
		return nil
	})
}

// load sends requests until it is stopped.
type load struct {
	count atomic.Int64 // requests that were answered
	end   context.CancelFunc
	group *errgroup.Group
}

// answered returns how many requests were answered so far.
func (l *load) answered() int64 { return l.count.Load() }

// startLoad starts four clients that send one request after the other, for at
// most a minute, and take every answer but 200 for an error.
func startLoad(t *testing.T, envoy *envoytest.Envoy) *load {
	t.Helper()
	ctx, end := context.WithTimeout(t.Context(), time.Minute)
	l := &load{end: end, group: new(errgroup.Group)}
	for i := range 4 {
		l.group.Go(func() error {
			pace := time.NewTicker(2 * time.Millisecond)
			defer pace.Stop()
			for {
				select {
				case <-ctx.Done():
					return nil
				case <-pace.C:
				}
				if err := wantAdmitted(envoy, fmt.Sprintf("load-%d", i)); err != nil {
					return err
				}
				l.count.Add(1)
			}
		})
	}
	return l
}

// stop ends the load, fails the test if an answer was not 200, and returns the
// number of requests.
func (l *load) stop(t *testing.T) int64 {
	t.Helper()
	l.end()
	if err := l.group.Wait(); err != nil {
		t.Errorf("a request was lost: %v", err)
	}
	return l.count.Load()
}

// wantAdmitted sends one request and wants it answered with 200.
func wantAdmitted(envoy *envoytest.Envoy, key string) error {
	answer, err := envoy.Try("/", apiKey(key))
	if err != nil {
		return err
	}
	if answer.Code != http.StatusOK {
		return fmt.Errorf("key %s: got %d, want 200", key, answer.Code)
	}
	return nil
}
