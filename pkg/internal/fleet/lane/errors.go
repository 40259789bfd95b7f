package lane

import (
	"errors"
	"fmt"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// clockError is of a request that needs a clock, while there is none to be trusted.
func clockError(r awsdb.Reading) error {
	return fmt.Errorf("%w: the clock of this machine may be off by %v; it must be set right, or that of the store's server", limiter.ErrUnavailable, r.Uncertainty)
}

var (
	errLeft    = fmt.Errorf("%w: the caller has left", limiter.ErrUnavailable)
	errStopped = fmt.Errorf("%w: the store was closed", limiter.ErrUnavailable)
	errSilent  = fmt.Errorf("%w: no message to the store was answered for %v", limiter.ErrUnavailable, silence)
	// errDropped says that the outcome of a write stays unknown: its id is not in the item,
	// where a replica that shares its slot can have written since.
	errDropped = fmt.Errorf("%w: the reply was lost", limiter.ErrUncertain)
	// errUnreadable says that a write was applied to an item that cannot be read.
	errUnreadable = errors.New("the item after the write is unreadable")
)
