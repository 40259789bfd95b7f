package admin

import (
	"net/http"
	"net/http/pprof"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Config configures the HTTP side of the service.
type Config struct {
	JSON      http.Handler        // answers /json; required
	Explainer *Explainer          // answers /v1/explain; required
	Health    *Health             // answers /readyz; required
	Gatherer  prometheus.Gatherer // answers /metrics; required
	Archive   Archive             // answers /v1/backup and /v1/restore; nil = nothing to copy
	PProf     bool                // serve /debug/pprof/
}

// Handler returns the handler of all HTTP endpoints.
func Handler(cfg Config) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/json", cfg.JSON)
	mux.Handle("POST /v1/explain", cfg.Explainer)
	copies := archive{cfg.Archive}
	mux.HandleFunc("GET /v1/backup", copies.local(copies.backup))
	mux.HandleFunc("POST /v1/restore", copies.local(copies.restore))
	mux.Handle("GET /metrics", promhttp.HandlerFor(cfg.Gatherer, promhttp.HandlerOpts{}))
	mux.Handle("GET /readyz", cfg.Health)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("ok\n")) // the client went away: nobody to tell
	})
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(index)) // the client went away: nobody to tell
	})
	if cfg.PProf {
		mux.HandleFunc("/debug/pprof/", pprof.Index)
		mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	}
	return mux
}

const index = `ratelimit

POST /json          ask for a decision (RateLimitRequest as JSON)
POST /v1/explain    what a descriptor would do, and why
GET  /v1/backup     a copy of the data directory's file, for callers on this machine
POST /v1/restore    put a copy back, for callers on this machine
GET  /metrics       Prometheus metrics
GET  /healthz       alive
GET  /readyz        ready, and which configuration is in force
`
