package controlapi

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

func problem(status int, kind api.Kind, detail string) *api.Problem {
	return &api.Problem{Type: kind, Status: status, Detail: detail}
}

func invalid(format string, args ...any) error {
	return problem(http.StatusBadRequest, api.Invalid, fmt.Sprintf(format, args...))
}

func notFound(format string, args ...any) error {
	return problem(http.StatusNotFound, api.NotFound, fmt.Sprintf(format, args...))
}

// problemOf translates the errors of a store.
func problemOf(err error) api.Problem {
	if p, ok := errors.AsType[*api.Problem](err); ok {
		return *p
	}
	p := api.Problem{Status: http.StatusServiceUnavailable, Type: api.Unavailable, Detail: err.Error()}
	switch {
	case errors.Is(err, limiter.ErrInvalid):
		p.Status, p.Type = http.StatusBadRequest, api.Invalid
		p.Detail = strings.TrimPrefix(p.Detail, limiter.ErrInvalid.Error()+": ")
	case errors.Is(err, limiter.ErrNotFound):
		p.Status, p.Type = http.StatusNotFound, api.NotFound
		p.Detail = strings.TrimPrefix(p.Detail, limiter.ErrNotFound.Error()+": ")
	case errors.Is(err, limiter.ErrState):
		p.Status, p.Type = http.StatusConflict, api.State
		p.Detail = strings.TrimPrefix(p.Detail, limiter.ErrState.Error()+": ")
	case errors.Is(err, limiter.ErrConflict):
		p.Status, p.Type = http.StatusPreconditionFailed, api.Precondition
	case errors.Is(err, limiter.ErrUncertain):
		p.Type = api.Uncertain
	}
	return p
}
