package server

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel/sdk/trace"
)

// logEvery is the least time between two lines about spans that were dropped.
const logEvery = time.Minute

// logged logs the errors of an exporter, which would else reach the standard error.
type logged struct {
	trace.SpanExporter

	log *slog.Logger

	mu      sync.Mutex
	last    time.Time // of a line
	dropped int       // spans since then
}

// ExportSpans implements trace.SpanExporter.
func (l *logged) ExportSpans(ctx context.Context, spans []trace.ReadOnlySpan) error {
	err := l.SpanExporter.ExportSpans(ctx, spans)
	if err == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dropped += len(spans)
	if now := time.Now(); now.Sub(l.last) >= logEvery {
		l.log.WarnContext(ctx, "spans were dropped: the OpenTelemetry collector did not take them", "spans", l.dropped, "error", err)
		l.last, l.dropped = now, 0
	}
	return nil
}
