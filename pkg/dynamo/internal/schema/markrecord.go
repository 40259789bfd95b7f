package schema

import (
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Attributes of marks and secrets.
const (
	attrOwner  = "owner"  // of a settlement; binary where it is not UTF-8
	attrSecret = "secret" // binary
)

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

// SecretItem returns the record of a secret.
func SecretItem(k Key, secret []byte, now time.Time) map[string]types.AttributeValue {
	item := k.Attributes()
	item[attrSecret] = &types.AttributeValueMemberB{Value: secret}
	item[AttrCreatedAt] = NumberAttribute(now.UnixMilli())
	return item
}

// ParseSecret returns a secret. Its errors do not tell it.
func ParseSecret(table string, k Key, item map[string]types.AttributeValue) ([]byte, error) {
	r := NewReader(table, k, item)
	b, ok := r.Item[attrSecret].(*types.AttributeValueMemberB)
	if !ok {
		r.Fail(attrSecret, "is %s; it must be binary", TypeName(r.Item[attrSecret]))
		return nil, r.Fault
	}
	if n := len(b.Value); n < limiter.MinSecretLength || n > limiter.MaxSecretLength {
		r.Fail(attrSecret, "has %d bytes; it must have %d to %d", n, limiter.MinSecretLength, limiter.MaxSecretLength)
		return nil, r.Fault
	}
	return b.Value, nil
}
