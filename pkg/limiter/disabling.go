package limiter

import (
	"context"
	"strings"
	"time"
)

// Disabling says since when a subject is disabled, by which principal, and why.
type Disabling struct {
	Since  time.Time // UTC, whole milliseconds
	By     string    // the principal, see WithPrincipal; "" = a Go program
	Reason string    // see WithReason; "" = none was given
}

// disablingBy returns the disabling at now by the caller of a context.
func disablingBy(ctx context.Context, now time.Time) *Disabling {
	return &Disabling{
		Since: time.UnixMilli(now.UnixMilli()).UTC(), By: strings.Clone(PrincipalFrom(ctx)), Reason: strings.Clone(ReasonFrom(ctx)),
	}
}
