package schema

import (
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

const attrOwner = "owner" // of a settlement; binary where it is not UTF-8

// markMargin is how long a mark is kept after its reservation has expired. DynamoDB
// deletes an item late, but never before its ttl has passed by its own clock. One hour
// covers a caller's clock that differs, and one a clock that was set back. The third covers
// a call that was sent before the expiry and is still under way, and whole seconds.
const markMargin = 3 * time.Hour

// MarkItem returns the mark of a settlement.
func MarkItem(k Key, m limiter.Mark) map[string]types.AttributeValue {
	item := k.Attributes()
	item[attrOwner] = TextAttribute(strings.Clone(m.Owner))
	if ttl := m.Expires.Add(markMargin).Unix() + 1; ttl > 0 && ttl <= MaxTTL {
		item[AttrTTL] = NumberAttribute(ttl)
	}
	return item
}

// ParseMark returns the owner of a mark.
func ParseMark(table string, k Key, item map[string]types.AttributeValue) (string, error) {
	r := NewReader(table, k, item)
	owner := r.Text(attrOwner)
	if n := len(owner); n == 0 || n > limiter.MaxMarkLength {
		r.Fail(attrOwner, "has %d bytes; it must have 1 to %d", n, limiter.MaxMarkLength)
	}
	if r.Fault != nil {
		return "", r.Fault
	}
	return owner, nil
}
