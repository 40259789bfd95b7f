package limiter

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"
)

// BudgetEvent reports that usage has reached a threshold of a budget.
type BudgetEvent struct {
	Namespace, Entity, Resource, Limit string

	Window UsageWindow
	Start  time.Time // of the window, UTC
	// Percent is one of [BudgetThresholds].
	Percent int
	Tokens  int64 // the budget
	Used    int64 // millitokens in the window, when the threshold was detected
	// Shared reports that the budget is that of a resource or of the system. Each entity that a
	// client names then has one, so a client that invents names can cause any number of events.
	Shared bool
}

// NewBudgetEvent returns the event of one threshold of the budget of a bucket. used is in millitokens.
func NewBudgetEvent(of BudgetBucket, b Budget, start time.Time, percent int, used int64) BudgetEvent {
	return BudgetEvent{
		Namespace: of.Namespace, Entity: of.Entity, Resource: of.Resource, Limit: b.Limit,
		Window: b.Window, Start: start.UTC(), Percent: percent, Tokens: b.Tokens, Used: used, Shared: of.Shared,
	}
}

// BudgetEvents returns the events of the thresholds above reported, up to the one that usage has reached.
func BudgetEvents(of BudgetBucket, b Budget, start time.Time, reported int, used int64) []BudgetEvent {
	crossed := CrossedThresholds(reported, ReachedPercent(b.Tokens, used))
	events := make([]BudgetEvent, len(crossed))
	for i, p := range crossed {
		events[i] = NewBudgetEvent(of, b, start, p, used)
	}
	return events
}

// ID returns the name of the event, 32 hexadecimal digits. It is the same for the same namespace,
// entity, resource, limit, window, budget and threshold.
func (e *BudgetEvent) ID() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %v %d %d %d", e.Namespace, e.Entity, e.Resource, e.Limit, e.Window, e.Start.Unix(), e.Tokens, e.Percent))
	return hex.EncodeToString(sum[:16])
}
