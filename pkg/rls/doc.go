// Package rls is Envoy's Rate Limit Service, version 3, over gRPC and over HTTP
// with JSON.
//
// A call becomes a plan by the rules of package descriptor, the plan a decision
// by a [Decider], and the decision the answer: a status for each descriptor, the
// response headers, and dynamic metadata that says which limit denied.
//
//	wire ── decode ──► rules ──► decider ──► statuses, headers, metadata ── encode ──► wire
//
// # What never happens
//
// Envoy lets a request pass when its call ends in an error, so nothing that a
// client of the gateway can influence ends in one: any bytes of any length are a
// legal key or value, also such as are not UTF-8. That is why the package has its
// own codec ([ServerOptions]). InvalidArgument is for what the gateway's
// configuration says wrongly: no domain, no descriptors, an unknown unit. A
// denial is an answer, and the overall code is always set.
//
// # Time
//
// Envoy cuts durations down to seconds, so what is sent is whole seconds, rounded
// up: whoever waits that long is admitted.
package rls
