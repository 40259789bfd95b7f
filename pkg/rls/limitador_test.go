package rls_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/embedded"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/rls"
)

// newServer returns a server of the API over two limits, and a function that hides counters, or all.
func newServer(t *testing.T) (*httptest.Server, func(on bool)) {
	t.Helper()
	chat := []string{`descriptors[0].path == "/chat"`}
	rules, problems := descriptor.Compile([]descriptor.DomainSpec{{Domain: "ns", Limits: []descriptor.CallLimitSpec{
		{Path: "[0]", Name: "tokens", MaxValue: 100, Seconds: 3600, Conditions: chat, Variables: []string{`descriptors[0].user`}},
		{Path: "[1]", Name: "all", MaxValue: 150, Seconds: 3600, Conditions: chat},
	}}}, nil)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	store := embedded.New(embedded.Config{SweepInterval: time.Hour}) // not by the clock of the machine
	t.Cleanup(func() {
		if err := store.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	l, err := limiter.New(limiter.Config{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	counters, err := rls.NewCounters()
	if err != nil {
		t.Fatal(err)
	}
	now := func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }
	service, err := rls.New(rls.Config{Decider: l, Now: now, Counters: counters})
	if err != nil {
		t.Fatal(err)
	}
	service.Reload(rules, nil)
	var off, hidden atomic.Bool
	api := rls.LimitadorAPI{
		Ask: service.Ask, Metered: service.Metered, Used: counters.Used, Decider: l, Now: now,
		InForce: func() rls.LimitadorInForce {
			return rls.LimitadorInForce{On: !off.Load(), Counters: !hidden.Load(), Rules: rules}
		},
	}
	server := httptest.NewServer(api.Handler())
	t.Cleanup(server.Close)
	return server, func(on bool) { off.Store(!on); hidden.Store(true) }
}

// The HTTP API of limitador: what it answers by default, and that its lists show what was used.
func TestLimitadorHTTP(t *testing.T) {
	t.Parallel()
	server, show := newServer(t)
	ask := func(method, path, body string) string {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		response, err := server.Client().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%d %s", response.StatusCode, strings.TrimSpace(string(text)))
	}
	of := func(user string, delta int) string {
		return fmt.Sprintf(`{"namespace":"ns","values":{"path":"/chat","user":%q},"delta":%d,"response_headers":"DraftVersion03"}`, user, delta)
	}
	many := make([]string, rls.MaxEntries+1)
	for i := range many {
		many[i] = fmt.Sprintf(`"k%d":""`, i)
	}
	wide := fmt.Sprintf(`{"namespace":"ns","values":{%s},"delta":1}`, strings.Join(many, ","))
	for _, step := range []struct{ method, path, body, want string }{
		{"GET", "/status", "", "200 null"},
		{"GET", "/counters/ns", "", "200 []"},
		{"POST", "/check", of("al", 100), "200 null"},
		{"POST", "/check", of("al", 101), "429 Too many requests"},
		{"POST", "/check_and_report", of("al", 60), "200 null"},
		{"POST", "/check_and_report", of("al", 41), "429 Too many requests"},
		{"POST", "/check", of("al", 40), "200 null"},
		{"POST", "/report", of("al", 40), "403 "},
		{"POST", "/check_and_report", of("al", 0), "200 null"},
		{"POST", "/check", of("al", 0), "200 null"},
		{"POST", "/report", of("al", 0), "200 null"},
		{"POST", "/check", wide, "429 Too many requests"},
		{"POST", "/report", wide, "413 "},
		{"POST", "/check", `{"namespace":"ns","values":{}}`, "400 "},
		{"POST", "/check", `{"namespace":"ns","delta":1}`, "400 "},
		{"POST", "/check", `{"values":{},"delta":1}`, "400 "},
		{"POST", "/check", `{`, "400 "},
		{"GET", "/check", "", "405 "},
		{"GET", "/limits/unknown", "", "200 []"},
		{"GET", "/limits/ns", "", `200 [{"id":null,"namespace":"ns","max_value":100,"seconds":3600,"name":"tokens","conditions":["descriptors[0].path == \"/chat\""],"variables":["descriptors[0].user"]},`},
		{"GET", "/counters/ns", "", `200 [{"limit":{"id":null,"namespace":"ns","max_value":150,`},
		{"GET", "/counters/ns", "", `"set_variables":{"descriptors[0].user":"al"},"remaining":40,"expires_in_seconds":2160}]`},
	} {
		if got := ask(step.method, step.path, step.body); !strings.Contains(got, step.want) {
			t.Errorf("%s %s %s: got %s, want %s", step.method, step.path, step.body, got, step.want)
		}
	}

	show(true)
	if got := ask("GET", "/counters/ns", ""); !strings.HasPrefix(got, "404") {
		t.Errorf("hidden counters: got %s", got)
	}
	show(false)
	if got := ask("GET", "/status", ""); !strings.HasPrefix(got, "404") {
		t.Errorf("without limits: got %s", got)
	}
}
