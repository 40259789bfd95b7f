package rls

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"
)

// event is a kind of event that is logged.
type event int

const (
	eventUndecided event = iota
	eventPanic
	eventOverloaded
	eventInvalid
	eventReservation
	eventTooLarge
	eventLate
)

// events is their number.
const events = 7

func (e event) String() string {
	switch e {
	case eventUndecided:
		return "not decided"
	case eventPanic:
		return "panic"
	case eventOverloaded:
		return "too many calls in flight"
	case eventInvalid:
		return "invalid request: the gateway lets it pass; correct its configuration"
	case eventReservation:
		return "reservation: not made, or not settled"
	case eventTooLarge:
		return "request too large: denied"
	case eventLate:
		return "decided late: the store is slow"
	default:
		return "unknown"
	}
}

// throttledLog logs at most one line a second for each kind of event, so that
// trouble with every call does not become trouble with the log.
type throttledLog struct {
	logger *slog.Logger
	last   [events]atomic.Int64 // Unix seconds of the last line
	quiet  [events]atomic.Int64 // events that were not logged since
}

func (l *throttledLog) error(ctx context.Context, e event, attrs ...slog.Attr) {
	if suppressed, ok := l.due(e); ok {
		attrs = append(attrs, slog.String("event", e.String()), slog.Int64("suppressed", suppressed))
		l.logger.LogAttrs(ctx, slog.LevelError, "rate limit call went wrong", attrs...)
	}
}

// debug logs an event that is no trouble, where that level is logged.
func (l *throttledLog) debug(ctx context.Context, e event) {
	if !l.logger.Enabled(ctx, slog.LevelDebug) {
		return
	}
	if suppressed, ok := l.due(e); ok {
		l.logger.LogAttrs(ctx, slog.LevelDebug, "rate limit call", slog.String("event", e.String()), slog.Int64("suppressed", suppressed))
	}
}

// due reports whether an event is to be logged, and how many were not since the last.
func (l *throttledLog) due(e event) (suppressed int64, ok bool) {
	now, last := time.Now().Unix(), l.last[e].Load()
	if now == last || !l.last[e].CompareAndSwap(last, now) {
		l.quiet[e].Add(1)
		return 0, false
	}
	return l.quiet[e].Swap(0), true
}
