package items

import (
	"strconv"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// meter notes the consumption of limits that a write adds, and its time. So usage is counted by the
// very script that takes, exactly once, and there is no aggregator.
type meter struct {
	consumed map[string]int64 // millitokens by limit
	at       int64            // Unix ms; 0 = the write has no time
}

// set notes an attribute that is set.
func (m *meter) set(name, value string) {
	if name == schema.AttrLastTake || name == schema.AttrAt {
		m.at = max(m.at, number(value))
	}
}

// add notes a number that is added.
func (m *meter) add(name, value string) {
	limit, ok := schema.LimitOfConsumed(name)
	if !ok {
		return
	}
	if m.consumed == nil {
		m.consumed = make(map[string]int64)
	}
	m.consumed[limit] += number(value)
}

// number returns the number of an encoded value, 0 where it is none.
func number(value string) int64 {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
