package rls

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// event is a kind of event in the log.
type event string

const (
	eventUndecided   event = "not decided"
	eventPanic       event = "panic"
	eventOverloaded  event = "too many calls in flight"
	eventInvalid     event = "invalid request: the gateway lets it pass; correct its configuration"
	eventReservation event = "reservation: not made, or not settled"
	eventTooLarge    event = "request too large: denied"
	eventLate        event = "decided late: the store is slow"
)

// eventLog logs and counts the errors of a service.
type eventLog struct {
	*limiter.SampledLog

	now    func() time.Time
	errors *prometheus.CounterVec
}

// trouble logs an event with its cause, one of a few words. It logs at most one line a second for
// each cause.
func (l *eventLog) trouble(ctx context.Context, e event, cause string, attrs ...slog.Attr) {
	l.Write(ctx, l.now(), slog.LevelError, string(e)+" "+cause, "rate limit call went wrong", append(attrs, slog.String("event", string(e)))...)
}

// failed notes that the decider returned an error.
func (l *eventLog) failed(ctx context.Context, err error) {
	kind := "other"
	switch {
	case errors.Is(err, limiter.ErrInvalid):
		kind = "invalid"
	case errors.Is(err, limiter.ErrClosed):
		kind = "closed"
	}
	l.errors.WithLabelValues(kind).Inc()
	l.trouble(ctx, eventUndecided, kind, slog.Any("error", err))
}
