package envoytest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/ratelimit/ratelimit/test/envoytest"
)

// twoQuotas is a file of envoyproxy/ratelimit with the quotas of its integration scripts. Their hour is a minute
// there, and begins anew in it.
const twoQuotas = `
domain: quota
descriptors:
- {key: service, value: service_1, quota_mode: true, rate_limit: {unit: hour, requests_per_unit: 1}}
- {key: service, value: service_2, quota_mode: true, rate_limit: {unit: hour, requests_per_unit: 2}}
`

// The calls of the scripts quota.sh, token-quota.sh and multiservice-tokenquota.sh of envoyproxy/ratelimit get the
// answers that those expect (testdata/quota.yaml).
func TestQuotaScripts(t *testing.T) {
	envoytest.Need(t)
	for path, want := range map[string][]string{
		"/quota":                   {"service_1", "service_2", "denied"}, // the first has nothing left
		"/tokenquota":              {"service_1", "service_1", "service_1", "denied"},
		"/multiservice-tokenquota": {"service_1", "service_1", "service_2", "service_2", "service_2", "denied"},
	} {
		t.Run(filepath.Base(path), func(t *testing.T) {
			envoy := startQuotas(t)
			for i, service := range want {
				answer := envoy.Get(t, path, nil)
				got := answer.Header.Get("X-Served-By")
				if answer.Code == http.StatusTooManyRequests {
					got = "denied"
				}
				if got != service {
					t.Errorf("request %d: got %d by %q, want %q", i+1, answer.Code, got, service)
				}
				if path != "/quota" && service != "denied" {
					awaitCalls(t, envoy, int64(2*(i+1)))
				}
			}
		})
	}
}

// startQuotas starts the service and an Envoy with the quotas, and an upstream that says by which service it answers.
func startQuotas(t *testing.T) *envoytest.Envoy {
	t.Helper()
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Served-By", r.Header.Get("X-Service"))
	}))
	t.Cleanup(upstream.Close)
	service := envoytest.StartService(t, writeRules(t, fmt.Sprintf("include: [{path: %q}]\n", writeRules(t, twoQuotas))), "", "")
	return envoytest.StartEnvoy(t, filepath.Join("testdata", "quota.yaml"), envoytest.Ports{
		servicePort: {service.GRPC}, upstreamPort: {upstream.Listener.Addr().String()},
	})
}
