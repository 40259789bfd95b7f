package rls

import (
	"context"
	"log/slog"
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

// trouble logs an event with its cause, one of a few words. It logs at most one line a second for
// each cause.
func (s *Service) trouble(ctx context.Context, e event, cause string, attrs ...slog.Attr) {
	s.log.Write(ctx, s.now(), slog.LevelError, string(e)+" "+cause, "rate limit call went wrong", append(attrs, slog.String("event", string(e)))...)
}
