package items

import (
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

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
func (m *meter) set(name string, v types.AttributeValue) {
	if name == schema.AttrLastTake || name == schema.AttrAt {
		if n, err := strconv.ParseInt(numberOf(v), 10, 64); err == nil {
			m.at = max(m.at, n)
		}
	}
}

// adds notes a number that is added.
func (m *meter) adds(name string, v types.AttributeValue) {
	if limit, ok := schema.LimitOfConsumed(name); ok {
		m.consumed = append(m.consumed, consumption{limit, numberOf(v)})
	}
}

// numberOf returns the text of a number, "" where it is none.
func numberOf(v types.AttributeValue) string {
	if n, ok := v.(*types.AttributeValueMemberN); ok {
		return n.Value
	}
	return ""
}

// uncounted reports whether an attribute is only for an aggregator, or for splits: an item of this package does not have
// it.
func uncounted(name string) bool {
	_, ok := schema.LimitOfConsumed(name)
	return ok || name == schema.AttrUnits
}

// isUncounted reports whether a change adds to such an attribute.
func isUncounted(c *schema.Change) bool { return c.Kind == schema.Add && uncounted(c.Attr) }
