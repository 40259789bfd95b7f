package admin_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ratelimit/ratelimit/pkg/admin"
)

// At a loopback address a request must be addressed to this machine or to a configured name. At
// another address it must be one of the configured names, if there are any. Probes are exempt.
func TestHosts(t *testing.T) {
	const known, unknown = http.StatusTeapot, http.StatusMisdirectedRequest
	for _, test := range []struct {
		host                          string
		loopback, configured, anybody int // status; configured is not at a loopback address
	}{
		{"localhost", known, known, known},
		{"localhost:8080", known, known, known},
		{"LOCALHOST.:8080", known, known, known},
		{"a.localhost:8080", known, known, known},
		{"127.0.0.1:8080", known, known, known},
		{"192.0.2.1", known, known, known},
		{"[::1]:8080", known, known, known},
		{"[::1]", known, known, known},
		{"[fe80::1%25lo]:8080", known, known, known},
		{"", known, known, known},
		{"ratelimit.internal:8080", unknown, known, known},
		{"RateLimit.Internal", unknown, known, known},
		{"evil.example", unknown, unknown, known},
		{"evil.example:8080", unknown, unknown, known},
		{"127.0.0.1.evil.example", unknown, unknown, known},
		{"localhost.evil.example:8080", unknown, unknown, known},
		{"notlocalhost", unknown, unknown, known},
		{"ratelimit.internal.evil.example", unknown, unknown, known},
	} {
		for want, cfg := range map[*int]admin.Config{
			&test.loopback: {Loopback: true}, &test.configured: {Hosts: []string{"ratelimit.internal"}}, &test.anybody: {},
		} {
			cfg.JSON = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
			cfg.Explainer, cfg.Health, cfg.Gatherer = new(admin.Explainer), new(admin.Health), prometheus.NewRegistry()
			h := admin.Handler(cfg)
			for path, code := range map[string]int{"/json": *want, "/healthz": http.StatusOK, "/readyz": http.StatusServiceUnavailable} {
				r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
				r.Host = test.host
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				if w.Code != code {
					t.Errorf("%s of %q, loopback %v, hosts %v: got %d, want %d", path, test.host, cfg.Loopback, cfg.Hosts, w.Code, code)
				}
			}
			for _, path := range []string{"/metrics", "/", "/v1/explain"} {
				method := http.MethodGet
				if path == "/v1/explain" {
					method = http.MethodPost
				}
				r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader("{}"))
				r.Host = test.host
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				if (w.Code == unknown) != (*want == unknown) {
					t.Errorf("%s of %q, loopback %v, hosts %v: got %d, want like /json", path, test.host, cfg.Loopback, cfg.Hosts, w.Code)
				}
			}
		}
	}
}
