package rls_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/rls"
)

// lateEnv is a service whose decisions are all late.
func lateEnv(t *testing.T, change func(*rls.Config)) *env {
	t.Helper()
	return newEnv(t, func(c *rls.Config) {
		change(c)
		exact := newLimiter(t, c.Now)
		c.Decider = deciderFunc(func(ctx context.Context, now time.Time, req *limiter.Request, d *limiter.Decision) error {
			err := exact.Decide(ctx, now, req, d)
			d.Late = true
			return err
		})
	})
}

// A late decision is answered like any other, and the metadata says that it is late. It counts for
// no policy, and is no fallback.
func TestLateDecisionsAreTold(t *testing.T) {
	headers := func(c *rls.Config) { c.Headers = rls.Headers{RetryAfter: true, XRateLimit: true} }
	var fallbacks int
	exact, late := newEnv(t, headers), lateEnv(t, func(c *rls.Config) {
		headers(c)
		c.OnFallback = func() { fallbacks++ }
	})
	for _, hits := range []string{`"hitsAddend":"9"`, `"hitsAddend":"2"`} {
		ask := descriptor1(hits, "api_key", "a", "model", "m")
		want, err := exact.ask(t, ask)
		if err != nil {
			t.Fatal(err)
		}
		got, err := late.ask(t, ask)
		if err != nil {
			t.Fatal(err)
		}
		if !got.GetDynamicMetadata().GetFields()["late"].GetBoolValue() {
			t.Errorf("metadata of a late decision: %v", got.GetDynamicMetadata())
		}
		if diff := cmp.Diff(want, got, protocmp.Transform(), protocmp.IgnoreFields(&rlsv3.RateLimitResponse{}, "dynamic_metadata")); diff != "" {
			t.Errorf("%s: answers differ (-exact +late)\n%s", hits, diff)
		}
	}
	counts := series(t, late.registry)
	for name, want := range map[string]float64{
		`ratelimit_late_decisions_total{result="allowed"}`:                         1,
		`ratelimit_late_decisions_total{result="denied"}`:                          1,
		`ratelimit_decisions_total{domain="llm",result="allowed",rule="requests"}`: 1,
		`ratelimit_decisions_total{domain="llm",result="denied",rule="requests"}`:  1,
	} {
		if counts[name] != want {
			t.Errorf("%s: got %v, want %v", name, counts[name], want)
		}
	}
	for name := range counts {
		if strings.HasPrefix(name, "ratelimit_degraded_total") || strings.Contains(name, "fallback") {
			t.Errorf("a late decision is counted in %s", name)
		}
	}
	if fallbacks > 0 {
		t.Errorf("%d fallbacks were told of", fallbacks)
	}
}

// The same over /json.
func TestLateDecisionsAreToldInJSON(t *testing.T) {
	e := lateEnv(t, func(*rls.Config) {})
	w := httptest.NewRecorder()
	e.service.JSONHandler().ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/json", strings.NewReader(descriptor1(``, "api_key", "a", "model", "m"))))
	var got rlsv3.RateLimitResponse
	if w.Code != http.StatusOK || !fromJSON(t, w.Body.String(), &got).GetDynamicMetadata().GetFields()["late"].GetBoolValue() {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}

// Late decisions are no errors: only the level debug has them, once a second at most.
func TestLateDecisionsAreLoggedForDebugging(t *testing.T) {
	for level, most := range map[slog.Level]int{slog.LevelDebug: 5, slog.LevelInfo: 0} {
		var log bytes.Buffer
		e := lateEnv(t, func(c *rls.Config) {
			c.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: level}))
		})
		for range 50 {
			if _, err := e.ask(t, descriptor1(``, "api_key", "a", "model", "m")); err != nil {
				t.Fatal(err)
			}
		}
		lines := strings.Count(log.String(), "decided late: the store is slow")
		if lines > most || most > 0 && lines == 0 {
			t.Errorf("at %v: %d lines\n%s", level, lines, log.String())
		}
	}
}
