// Package tracing sends spans of calls to an OpenTelemetry collector, as the standard
// variables OTEL_* of the environment say.
//
// It is off unless OTEL_TRACES_EXPORTER is otlp, or the environment has an endpoint of OTLP;
// then a service has no part of it. It speaks OTLP over gRPC. A span of a call is a child of
// that of the gateway, and has the domain and the answer. The calls of a store that is a
// table are its children.
package tracing
