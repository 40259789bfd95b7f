// Package admin is the HTTP side of the service, on two listeners.
//
// [Handler] is for gateways, probes and monitoring. It asks for no credential, and changes only
// balances:
//
//	POST /json          RateLimitRequest in, RateLimitResponse out; 429 when limited
//	POST /v1/explain    the rule, limits and balances for a descriptor, with reasons
//	GET  /metrics       Prometheus
//	GET  /healthz       200 while the process lives
//	GET  /healthcheck   200 and OK while it should get traffic, else 500, by any method
//	GET  /readyz        200 while it should get traffic; the body has the configuration in force
//	GET  /debug/pprof/  when enabled
//
// [Control] is for administration. Each of its requests has a [Principal], whose [Role] must
// suffice for the route:
//
//	POST /v1/explain    read        the same
//	GET  /v1/backup     administer  a copy of the whole store, with secrets
//	POST /v1/restore    administer  restores such a copy
//
// ControlConfig.Routes are further routes. Refusals are problems in the form of RFC 9457,
// [WriteProblem].
//
// # Console
//
// [ConsolePages] serves the page with which people watch and operate a service in a browser. The
// page is HTML, CSS and JavaScript in the binary. It asks /v1 of the same listener, with a token
// that its user enters, or behind a [Proxy] that names the user. It has no rights of its own: the files are the same for every caller, and
// have no secret.
package admin
