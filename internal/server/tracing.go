package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
	apitrace "go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"

	"github.com/ratelimit/ratelimit/config"
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

// NewTracing returns the tracing that the environment or the settings ask for, nil for none. version is that of
// the program. Spans that cannot be sent are dropped, and the logger says so once a minute.
func NewTracing(ctx context.Context, version string, of config.Tracing, log *slog.Logger) (*Tracing, error) {
	protocol, on, err := enabled(&of)
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
		resource.WithFromEnv(), // after those of the program, so that it wins
		resource.WithAttributes(attributes(&of)...),
	)
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	exporter, err := newExporter(ctx, protocol, of.Endpoint) // it connects when there is something to send
	if err != nil {
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_*: %w", err)
	}
	options := []trace.TracerProviderOption{trace.WithResource(about), trace.WithBatcher(&logged{SpanExporter: exporter, log: log})}
	if share, err := strconv.ParseFloat(of.Share, 64); err == nil {
		options = append(options, trace.WithSampler(trace.ParentBased(trace.TraceIDRatioBased(share))))
	}
	provider := trace.NewTracerProvider(options...)
	return &Tracing{provider: provider, propagator: propagator}, nil
}

// attributes returns those of the resource that the settings have.
func attributes(of *config.Tracing) (all []attribute.KeyValue) {
	for _, a := range []struct{ key, value string }{{"service.name", of.Service}, {"service.namespace", of.Namespace}, {"service.instance.id", of.Instance}} {
		if a.value != "" {
			all = append(all, attribute.String(a.key, a.value))
		}
	}
	return all
}

// newExporter returns the exporter of a protocol. endpoint is a URL; "" = that of the environment.
func newExporter(ctx context.Context, protocol, endpoint string) (*otlptrace.Exporter, error) {
	if protocol == protocolHTTP {
		var options []otlptracehttp.Option
		if endpoint != "" {
			options = append(options, otlptracehttp.WithEndpointURL(endpoint))
		}
		return otlptracehttp.New(ctx, options...)
	}
	var options []otlptracegrpc.Option
	if endpoint != "" {
		options = append(options, otlptracegrpc.WithEndpointURL(endpoint))
	}
	return otlptracegrpc.New(ctx, options...)
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
			return strings.HasPrefix(call.FullMethodName, "/"+rls.ServiceName+"/") || strings.HasPrefix(call.FullMethodName, "/"+rls.KuadrantServiceName+"/")
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
