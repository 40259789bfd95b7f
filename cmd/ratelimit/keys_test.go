package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/internal/server"
	"github.com/ratelimit/ratelimit/pkg/embedded"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/programtest"
)

// TestKeysReachDecisions compares the keys of a file about decisions with the answers
// of the service: from the file through the rules to the limiter and back.
func TestKeysReachDecisions(t *testing.T) {
	tree := programtest.WriteFile(t, "tree.yaml", "domain: tree\ndescriptors: [{key: k, rate_limit: {unlimited: true}}]\n")
	file := programtest.WriteFile(t, "ratelimit.yaml", `
server: {http: {refunds: true, charges: true}}
decision: {on_unavailable: deny, local: {share: 0.5}}
headers: [x-ratelimit]
include: [{path: "`+filepath.Join(filepath.Dir(tree), "*.yaml")+`"}]
unmatched: deny
plans: {free: {rpm: 3/minute}}
limits:
  system: {rpm: 4/day, tpm: {rate: 10/day, max_debt: 5}}
domains:
- domain: d
  unmatched: allow
  rules:
  - {name: default, match: {default: "*"}, entity: "1/{default}", resource: r, consume: {rpm: 1}}
  - {name: allow, match: {allow: "*"}, entity: "2/{allow}", resource: r, consume: {rpm: 1}, on_unavailable: allow}
  - {name: quarter, match: {quarter: "*"}, entity: "3/{quarter}", resource: r, consume: {rpm: 1}, on_unavailable: local, local: {share: 0.25}}
  - {name: half, match: {half: "*"}, entity: "4/{half}", resource: r, consume: {rpm: 1}, on_unavailable: local}
  - {name: charge, match: {charge: "*"}, entity: "5/{charge}", resource: r, consume: {tpm: hits}, overdraw: true}
  - {name: override, match: {override: "*"}, entity: "6/{override}", resource: r, consume: {rpm: 1, tpm: hits}, override: rpm}
  - {name: plan, match: {plan: "*"}, entity: "7/{plan}", resource: r, limits: "{plan}", consume: {rpm: 1}}
`)
	r := startHalf(t, file)
	const fails = "store_unavailable"
	for i, step := range []struct{ domain, key, more, want string }{
		{"d", "plan", ``, "200 2/3"},
		{"d", "plan", `,"hitsAddend":"4","isNegativeHits":true`, "200"}, // a constant is not given back
		{"d", "charge", `,"hitsAddend":"100"`, "200 0/10"},              // to 5 below zero
		{"d", "charge", `,"hitsAddend":"0"`, "429 0/10 limit_exhausted 51840"},
		{"d", "override", `,"limit":{"requestsPerUnit":2,"unit":"DAY"}`, "200 1/2"},
		{"d", "default", ``, "429 deny " + fails},
		{"d", "allow", ``, "200 allow"},
		{"d", "quarter", ``, "200 local 0/1"},
		{"d", "quarter", ``, "429 local 0/1 limit_exhausted 86400"},
		{"d", "half", ``, "200 local 1/2"},
		{"d", "nothing", ``, "200"},
		{"nowhere", "k", ``, "429 unmatched"},
		{"tree", "k", ``, "200"},
	} {
		body := fmt.Sprintf(`{"domain":%q,"descriptors":[{"entries":[{"key":%q,"value":"free"}]%s}]}`, step.domain, step.key, step.more)
		if got := r.summary(t, body); got != step.want {
			t.Errorf("step %d, %s: got %q, want %q", i, step.key, got, step.want)
		}
	}
}

// halfStore does not answer for some entities.
type halfStore struct{ *embedded.Store }

func (s halfStore) Take(ctx context.Context, now time.Time, ops []limiter.Op) (bool, error) {
	for i := range ops {
		if ops[i].Bucket.Entity < "5" {
			return false, fmt.Errorf("%w: a test", limiter.ErrUnavailable)
		}
	}
	return s.Store.Take(ctx, now, ops)
}

// startHalf serves HTTP with a store that does not answer for entities before "5".
func startHalf(t *testing.T, file string) *running {
	t.Helper()
	cfg, err := config.Load(file, config.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.NewOn(t.Context(), cfg, slog.New(slog.DiscardHandler), func(s *server.Service, _ context.Context) error {
		s.Store = halfStore{embedded.New(s.EmbeddedConfig())}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(context.Background()) })
	server := httptest.NewServer(s.Handler())
	t.Cleanup(server.Close)
	return &running{http: strings.TrimPrefix(server.URL, "http://")}
}

// summary asks over /json and returns the main parts of the answer: its code, the
// policy that decided, the remaining amount and the capacity, the reason of a denial,
// and its retry-after.
func (r *running) summary(t *testing.T, body string) string {
	t.Helper()
	resp, err := http.Post("http://"+r.http+"/json", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var answer struct {
		Metadata struct {
			Degraded   string `json:"degraded"`
			Reason     string `json:"reason"`
			RetryAfter int    `json:"retry_after"`
		} `json:"dynamicMetadata"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	if got := resp.Header.Get("retry-after"); got != "" {
		t.Errorf("retry-after: got %s, though headers leaves it out", got)
	}
	m, parts := answer.Metadata, []string{strconv.Itoa(resp.StatusCode)}
	if m.Degraded != "" {
		parts = append(parts, m.Degraded)
	}
	if capacity, _, ok := strings.Cut(resp.Header.Get("x-ratelimit-limit"), ","); ok {
		parts = append(parts, resp.Header.Get("x-ratelimit-remaining")+"/"+capacity)
	}
	if m.Reason != "" {
		parts = append(parts, m.Reason)
	}
	if m.RetryAfter > 0 {
		parts = append(parts, strconv.Itoa(m.RetryAfter))
	}
	return strings.Join(parts, " ")
}
