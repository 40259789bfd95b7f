package awscmd

import (
	"context"
	"time"

	"github.com/ratelimit/ratelimit/pkg/aggregator"
)

// Bounds of a call's time for budgets. Each is also at most a third of the time that is left.
const (
	mostBegin = 5 * time.Second
	mostEnd   = 10 * time.Second
)

// FunctionBudgets are compared with the usage that calls write.
type FunctionBudgets interface {
	// Begin begins a call, and returns the snapshots that it writes to.
	Begin(ctx context.Context) aggregator.Snapshots
	// End sends the events that the call noted, and drops those that are not sent when ctx is done.
	End(ctx context.Context) ToldEvents
}

// ToldEvents counts the events of a call.
type ToldEvents struct {
	Events                int64 `json:"BudgetEvents"`
	WebhookSent           int64 `json:"WebhookSent"`           // events that the receiver has accepted
	WebhookFailures       int64 `json:"WebhookFailures"`       // calls of the webhook that failed
	WebhookDropped        int64 `json:"WebhookDropped"`        // events that were not delivered, and will not be
	ConfigurationFailures int64 `json:"ConfigurationFailures"` // reads of the configuration
}

// partOfTime returns a time, but at most a third of the rest of ctx.
func partOfTime(ctx context.Context, most time.Duration) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return most
	}
	return max(min(most, time.Until(deadline)/3), 0)
}
