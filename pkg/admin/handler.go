package admin

import (
	"net/http"
	"net/http/pprof"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Config configures the public HTTP side of the service.
type Config struct {
	JSON      http.Handler        // answers /json; required
	Limitador http.Handler        // answers the paths of limitador's API; nil = nothing does
	Explainer *Explainer          // answers /v1/explain; required
	Health    *Health             // answers /readyz; required
	Gatherer  prometheus.Gatherer // answers /metrics; required
	PProf     bool                // serve /debug/pprof/

	// Hosts are the names that requests may be addressed to, beside localhost and IP addresses;
	// empty = any name, unless the listener is a Loopback one. Health is answered under any name.
	Hosts    []string
	Loopback bool // the listener has a loopback address
}

// Handler returns the handler of the public HTTP endpoints. None of them changes stored records,
// and none shows a secret.
func Handler(cfg Config) http.Handler {
	page := guard{hosts: cfg.Hosts, loopback: cfg.Loopback}.onlyOwnHosts
	mux := http.NewServeMux()
	mux.Handle("/json", page(sameSite(cfg.JSON)))
	if cfg.Limitador != nil {
		for _, path := range []string{"/status", "/limits/", "/counters/", "/check", "/report", "/check_and_report"} {
			mux.Handle(path, page(sameSite(cfg.Limitador)))
		}
	}
	mux.Handle("POST /v1/explain", page(sameSite(jsonOnly(cfg.Explainer))))
	for _, path := range []string{"/v1/backup", "/v1/restore", "/v1/status", "/v1/openapi.json", "/v1/namespaces", "/v1/namespaces/"} {
		mux.HandleFunc(path, elsewhere)
	}
	mux.Handle("GET /metrics", page(promhttp.HandlerFor(cfg.Gatherer, promhttp.HandlerOpts{})))
	mux.Handle("GET /readyz", cfg.Health)
	mux.HandleFunc("GET /healthz", text("ok\n"))
	mux.Handle("/healthcheck", http.HandlerFunc(cfg.Health.check))
	mux.Handle("GET /{$}", page(text(index)))
	if cfg.PProf {
		for path, profile := range map[string]http.HandlerFunc{
			"/debug/pprof/": pprof.Index, "/debug/pprof/cmdline": pprof.Cmdline, "/debug/pprof/profile": pprof.Profile,
			"/debug/pprof/symbol": pprof.Symbol, "/debug/pprof/trace": pprof.Trace,
		} {
			mux.Handle(path, page(profile))
		}
	}
	return mux
}

// elsewhere answers that administration is on another listener.
func elsewhere(w http.ResponseWriter, _ *http.Request) {
	writeProblem(w, http.StatusNotFound, "administration is on a listener of its own, server.admin in the configuration: by default the Unix socket admin.sock in the data directory, which `ratelimit status --data DIR` finds")
}

func text(s string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(s)) // an error says that the client has gone
	}
}

const index = `ratelimit

POST /json          ask for a decision (RateLimitRequest as JSON)
POST /v1/explain    what a descriptor would do, and why
GET  /metrics       Prometheus metrics
GET  /healthz       alive
GET  /healthcheck   ready, as envoyproxy/ratelimit says it
GET  /readyz        ready, and which configuration is in force
`
