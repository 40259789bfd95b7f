package rls_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/embedded"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/rls"
)

// Two requests a minute for each API key. Over gRPC, make the server with ServerOptions, and add
// the service with Register.
func Example() {
	store := embedded.New(embedded.Config{})
	defer func() { _ = store.Close(context.Background()) }()
	decider, err := limiter.New(limiter.Config{Store: store})
	if err != nil {
		fmt.Println(err)
		return
	}
	perMinute, err := limiter.NewLimits(limiter.PerMinute("rpm", 2))
	if err != nil {
		fmt.Println(err)
		return
	}
	rules, problems := descriptor.Compile([]descriptor.DomainSpec{{Domain: "gateway", Rules: []descriptor.RuleSpec{{
		Name:  "requests",
		Match: []descriptor.MatchSpec{{Key: "api_key", Value: "*"}},
		Takes: []descriptor.TakeSpec{{
			Entity: "key/{api_key}", Resource: "api", Limits: perMinute,
			Consume: []descriptor.ConsumeSpec{{Limit: "rpm", PerHit: limiter.Milli}},
		}},
	}}}}, nil)
	if len(problems) > 0 {
		fmt.Println(problems)
		return
	}
	service, err := rls.New(rls.Config{
		Decider: decider,
		Options: rls.Options{Headers: rls.Headers{RetryAfter: true}},
		Now:     func() time.Time { return time.Unix(1_800_000_000, 0) },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	service.Reload(rules, nil)

	const call = `{"domain": "gateway", "descriptors": [{"entries": [{"key": "api_key", "value": "k-1"}]}]}`
	for range 3 {
		w := httptest.NewRecorder()
		service.JSONHandler().ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/json", strings.NewReader(call)))
		fmt.Printf("%d %q\n", w.Code, w.Header().Get("retry-after"))
	}
	// Output:
	// 200 ""
	// 200 ""
	// 429 "30"
}
