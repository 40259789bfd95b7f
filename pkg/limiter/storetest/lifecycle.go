package storetest

import (
	"errors"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// isContractError reports whether err wraps one of the errors that a store may return.
func isContractError(err error) bool {
	for _, want := range []error{
		limiter.ErrInvalid, limiter.ErrUnavailable, limiter.ErrUncertain, limiter.ErrClosed, limiter.ErrConflict,
	} {
		if errors.Is(err, want) {
			return true
		}
	}
	return false
}
