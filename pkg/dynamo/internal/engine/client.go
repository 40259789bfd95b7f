package engine

import (
	"time"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/awsdb"
)

// Client returns the engine's client, which asks its breaker before each call. Other users
// of the table that share it share its view of outages.
func (e *Engine) Client() awsdb.Client { return e.guard }

// Timeouts returns how long one message may take, and how long a decision may take at most.
func (e *Engine) Timeouts() (attempt, budget time.Duration) {
	return e.cfg.Attempt, e.cfg.Budget
}
