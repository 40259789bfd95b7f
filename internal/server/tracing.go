package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
	apitrace "go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/rls"
)

// scope is the name of the library that makes the spans of this package.
const scope = "github.com/ratelimit/ratelimit"

// Tracing makes spans. Nil makes none.
type Tracing struct {
	provider   *trace.TracerProvider
	propagator propagation.TextMapPropagator
}

// NewTracing returns the tracing that the environment asks for, nil for none. version is that of
// the program. Spans that cannot be sent are dropped, and the logger says so once a minute.
func NewTracing(ctx context.Context, version string, log *slog.Logger) (*Tracing, error) {
	on, err := enabled()
	if err != nil || !on {
		return nil, err
	}
	propagator, err := propagators()
	if err != nil {
		return nil, err
	}
	about, err := resource.New(ctx,
		resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", "ratelimit"), attribute.String("service.version", version)),
		resource.WithFromEnv(), // last, so that it wins
	)
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	exporter, err := otlptracegrpc.New(ctx) // it connects when there is something to send
	if err != nil {
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_*: %w", err)
	}
	provider := trace.NewTracerProvider(trace.WithResource(about), trace.WithBatcher(&logged{SpanExporter: exporter, log: log}))
	return &Tracing{provider: provider, propagator: propagator}, nil
}

// Close sends the spans that were not sent yet, until ctx ends.
func (t *Tracing) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.provider.Shutdown(ctx)
}

// ServerOptions returns the options of a gRPC server that has a span for each call of the
// rate limit service, and none for health checks.
func (t *Tracing) ServerOptions() []grpc.ServerOption {
	if t == nil {
		return nil
	}
	handler := otelgrpc.NewServerHandler(
		otelgrpc.WithTracerProvider(t.provider), otelgrpc.WithPropagators(t.propagator), otelgrpc.WithMeterProvider(noop.NewMeterProvider()),
		otelgrpc.WithFilter(func(call *stats.RPCTagInfo) bool {
			return strings.HasPrefix(call.FullMethodName, "/"+rls.ServiceName+"/")
		}),
	)
	return []grpc.ServerOption{grpc.StatsHandler(handler), grpc.UnaryInterceptor(describe)}
}

// describe gives the span of a call its domain and its answer.
func describe(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	out, err := handle(ctx, req)
	span := apitrace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return out, err
	}
	if c, ok := req.(interface{ LoggedDomain() string }); ok {
		span.SetAttributes(attribute.String("ratelimit.domain", c.LoggedDomain()))
	}
	if a, ok := out.(interface{ Denied() bool }); ok {
		span.SetAttributes(attribute.Bool("ratelimit.denied", a.Denied()))
	}
	return out, err
}

// Store returns a store with spans for the calls that decisions wait for. A store that is
// local to the process is returned as it is: its calls take microseconds.
func (t *Tracing) Store(s limiter.Store) limiter.Store {
	if t == nil || s.Capabilities().Local {
		return s
	}
	return &store{Store: s, tracer: t.provider.Tracer(scope)}
}
