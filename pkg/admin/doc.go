// Package admin is the HTTP side of the service, on two listeners.
//
// [Handler] is for gateways, probes and monitoring. It asks for no credential, and changes
// nothing but balances:
//
//	POST /json          RateLimitRequest in, RateLimitResponse out; 429 when limited
//	POST /v1/explain    which rule, limits and balances a descriptor meets, and why
//	GET  /metrics       Prometheus
//	GET  /healthz       200 while the process lives
//	GET  /readyz        200 while it should get traffic; the body says which configuration is in force
//	GET  /debug/pprof/  when enabled
//
// [Control] is for administration. Each of its requests has a [Principal], whose [Role]
// must suffice for the route:
//
//	POST /v1/explain    read        the same
//	GET  /v1/backup     administer  a copy of all that the store keeps, secrets too
//	POST /v1/restore    administer  puts such a copy back
//
// and those of ControlConfig.Routes. Refusals are problems as RFC 9457 has them, [WriteProblem].
package admin
