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
// # Files
//
// A file uses only files of the lines above it, and of its own line:
//
//	problem, method, log, peak, client, kuadrantproto    mistakes of a gateway, methods; parts that need no call
//	rounding, escape, status, wire, window, codec        messages on the wire; periods and seconds
//	filestats, config, ruling, reserved, counters, call  one call: its request, its verdict
//	headers, body, peeks, filemetadata, metadata         parts of an answer
//	denials, unmatched_log, jsonrules, estimator         lines of the log; amounts that a gateway does not know
//	series, collector, limitmetrics                      numbers by rule and limit
//	metrics, filemetrics, quoted, state, count           metrics, rules in force; the limit that a status quotes
//	account, shadow                                      the counts of a call
//	encode, service, ask, reserve                        the whole answer; takes, reservations
//	kuadrant, parts, decide, serve                       the way of a call
//	grpc, direct, json, limitador                        transports
//
// # Time
//
// Envoy cuts durations down to seconds. So answers have whole seconds, rounded up: a client that
// waits that long is admitted.
package rls
