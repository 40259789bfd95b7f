package server

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// store makes a span of each call that a decision waits for.
type store struct {
	limiter.Store

	tracer trace.Tracer
}

// Take implements limiter.Store.
func (s *store) Take(ctx context.Context, now time.Time, ops []limiter.Op) (bool, error) {
	ctx, span := s.tracer.Start(ctx, "store take", about(ops[0].Bucket.Namespace, len(ops)))
	defer span.End()
	admitted, err := s.Store.Take(ctx, now, ops)
	span.SetAttributes(attribute.Bool("ratelimit.admitted", admitted))
	note(span, err)
	return admitted, err
}

// Read implements limiter.Catalog.
func (s *store) Read(ctx context.Context, namespace string, refs []limiter.Ref, records []limiter.Record) (uint64, error) {
	ctx, span := s.tracer.Start(ctx, "store read", about(namespace, len(refs)))
	defer span.End()
	generation, err := s.Store.Read(ctx, namespace, refs, records)
	note(span, err)
	return generation, err
}

// Settle implements limiter.Settlements.
func (s *store) Settle(ctx context.Context, now time.Time, m limiter.Mark) (bool, error) {
	ctx, span := s.tracer.Start(ctx, "store settle", about(m.Namespace, 1))
	defer span.End()
	won, err := s.Store.Settle(ctx, now, m)
	span.SetAttributes(attribute.Bool("ratelimit.settled", won))
	note(span, err)
	return won, err
}

// about returns the attributes of a call for that many buckets, records or marks.
func about(namespace string, n int) trace.SpanStartEventOption {
	return trace.WithAttributes(attribute.String("ratelimit.namespace", namespace), attribute.Int("ratelimit.items", n))
}

// note notes the error of a call, if there is one.
func note(span trace.Span, err error) {
	if err != nil {
		span.RecordError(err)
		span.SetStatus(codes.Error, "the store gave no answer")
	}
}
