package rls_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/ratelimit/ratelimit/pkg/rls"
)

func TestJSON(t *testing.T) {
	e := newEnv(t, func(c *rls.Config) { c.Headers.XRateLimit = true })
	handler := e.service.JSONHandler()
	post := func(body string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/json", strings.NewReader(body)))
		return w
	}
	headers := func(r *httptest.ResponseRecorder) map[string]string {
		all := map[string]string{}
		for name := range r.Header() {
			if name != "Content-Type" {
				all[name] = r.Header().Get(name)
			}
		}
		return all
	}
	admitted := post(descriptor1(`"hits_addend":"10"`, "api_key", "a", "model", "m"))
	denied := post(descriptor1(`"hitsAddend":"1"`, "api_key", "a", "model", "m"))
	if admitted.Code != http.StatusOK || denied.Code != http.StatusTooManyRequests {
		t.Errorf("got status %d, then %d, want 200, then 429", admitted.Code, denied.Code)
	}
	wantHeaders := map[string]string{
		"Retry-After": "6", "X-Ratelimit-Limit": `10, 10;w=60;name="rpm"`, "X-Ratelimit-Remaining": "0", "X-Ratelimit-Reset": "6",
	}
	if diff := cmp.Diff(wantHeaders, headers(denied)); diff != "" {
		t.Errorf("headers of a denial (-want +got)\n%s", diff)
	}
	overGRPC, err := e.ask(t, descriptor1(`"hitsAddend":"1"`, "api_key", "a", "model", "m"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(overGRPC, fromJSON(t, denied.Body.String(), &rlsv3.RateLimitResponse{}), protocmp.Transform()); diff != "" {
		t.Errorf("JSON and gRPC differ (-grpc +json)\n%s", diff)
	}
}

// Without rules yet a call is not wrong, and may be made again.
func TestHTTPWithoutRules(t *testing.T) {
	e := newEnv(t, nil)
	e.service.Reload(nil, &rls.Options{NoRules: true})
	limitador := rls.LimitadorAPI{Ask: e.service.Ask, Metered: e.service.Metered, InForce: func() rls.LimitadorInForce { return rls.LimitadorInForce{On: true} }}
	for path, handler := range map[string]http.Handler{"/json": e.service.JSONHandler(), "/check": limitador.Handler()} {
		body := `{"namespace":"ns","values":{},"delta":1}`
		if path == "/json" {
			body = descriptor1(`"hitsAddend":"1"`, "api_key", "a")
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, strings.NewReader(body)))
		if want := `{"error":"no rate limit configuration loaded"}`; w.Code != http.StatusServiceUnavailable || strings.TrimSpace(w.Body.String()) != want {
			t.Errorf("%s: got %d %s, want 503 %s", path, w.Code, w.Body, want)
		}
	}
}

func TestJSONRefuses(t *testing.T) {
	handler := newEnv(t, nil).service.JSONHandler()
	tests := []struct {
		name, method, body string
		status             int
		want               string // in the body
	}{
		{"nothing", http.MethodGet, "", http.StatusBadRequest, `not a RateLimitRequest in JSON: `},
		{"no JSON", http.MethodPost, "domain: x", http.StatusBadRequest, `not a RateLimitRequest in JSON: `},
		{"unknown field", http.MethodPost, `{"domian":"x"}`, http.StatusBadRequest, `unknown field \"domian\"`},
		{"no domain", http.MethodPost, `{"descriptors":[{}]}`, http.StatusBadRequest, `{"error":"domain is empty: set domain in the gateway's rate limit configuration"}`},
		{"unknown unit", http.MethodPost, `{"domain":"d","descriptors":[{"limit":{"unit":"WEEK"}}]}`, http.StatusBadRequest, `WEEK`},
	}
	for _, tt := range tests {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(tt.method, "/json", strings.NewReader(tt.body)))
		if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.want) {
			t.Errorf("%s: got %d %s, want %d with %s", tt.name, w.Code, w.Body, tt.status, tt.want)
		}
	}
}
