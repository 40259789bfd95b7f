package items

import (
	"strconv"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// meter notes the consumption of limits that a write adds, and its time. So usage is counted by the
// very script that takes, exactly once, and there is no aggregator.
type meter struct {
	consumed []consumption
	at       int64 // Unix ms; 0 = the write has no time
}

// consumption is that of a limit.
type consumption struct {
	limit  string
	number string // of millitokens
}

// set notes an attribute that is set.
func (m *meter) set(name, value string) {
	if name == schema.AttrLastTake || name == schema.AttrAt {
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			m.at = max(m.at, n)
		}
	}
}

// counts notes a number that is added. It reports whether that is only for an aggregator, or for splits: an item of this
// package does not have it.
func (m *meter) counts(name, value string) bool {
	limit, ok := schema.LimitOfConsumed(name)
	if ok {
		m.consumed = append(m.consumed, consumption{limit, value})
	}
	return ok || name == schema.AttrUnits
}
