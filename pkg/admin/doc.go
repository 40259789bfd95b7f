// Package admin is the HTTP side of the service: RLS over JSON, metrics, health,
// and the explanation of what a descriptor would do.
//
//	POST /json          RateLimitRequest in, RateLimitResponse out; 429 when limited
//	POST /v1/explain    which rule, limits and balances a descriptor meets, and why
//	GET  /v1/backup     a copy of all that the store keeps; for callers on this machine
//	POST /v1/restore    puts such a copy back; for callers on this machine
//	GET  /metrics       Prometheus
//	GET  /healthz       200 while the process lives
//	GET  /readyz        200 while it should get traffic; the body says which configuration is in force
//	GET  /debug/pprof/  when enabled
package admin
