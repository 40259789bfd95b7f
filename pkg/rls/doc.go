// Package rls is Envoy's Rate Limit Service, version 3, over gRPC and over HTTP with JSON.
//
// Package descriptor makes a plan of a call, and a [Decider] makes a decision of the plan. This
// package makes the answer: a status for each descriptor, the response headers, and dynamic
// metadata with the limit that denied.
//
//	wire ── decode ──► rules ──► decider ──► statuses, headers, metadata ── encode ──► wire
//
// # Calls never end in an error
//
// Envoy lets a request pass when its call ends in an error. So nothing that a client of the gateway
// can send makes a call end in one. Any bytes of any length are a legal key or value, even if they
// are not UTF-8. For this the package has its own codec ([ServerOptions]). InvalidArgument is only
// for mistakes in the gateway's configuration: no domain, no descriptors, an unknown unit. A denial
// is an answer, and the overall code is always set.
//
// # Time
//
// Envoy cuts durations down to seconds. So answers have whole seconds, rounded up: a client that
// waits that long is admitted.
package rls
