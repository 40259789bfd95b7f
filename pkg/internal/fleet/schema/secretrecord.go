package schema

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// attrSealed is the attribute of an encrypted secret; binary.
const attrSealed = "sealed"

// sealedOverhead is how much longer a secret is when it is encrypted: nonce and tag of AES-GCM.
const sealedOverhead = 12 + 16

// SecretItem returns the record of a secret that is encrypted.
func SecretItem(k Key, sealed []byte, now time.Time) map[string]types.AttributeValue {
	item := k.Attributes()
	item[attrSealed] = &types.AttributeValueMemberB{Value: sealed}
	item[AttrCreatedAt] = NumberAttribute(now.UnixMilli())
	return item
}

// ReplaceSecret puts a record of a secret in the place of another one, or of none. The refusal brings
// the record that is there.
func ReplaceSecret(item map[string]types.AttributeValue, sealed []byte) *ItemWrite {
	w := PutOrReplace(item)
	w.Require(attrSealed, "=", &types.AttributeValueMemberB{Value: sealed})
	w.Shows = true
	return w
}

// ParseSecret reads the record of a secret, which is encrypted. Its errors do not contain
// the secret.
func ParseSecret(table string, k Key, item map[string]types.AttributeValue) (sealed []byte, err error) {
	r := NewReader(table, k, item)
	b, ok := item[attrSealed].(*types.AttributeValueMemberB)
	if !ok {
		r.Fail(attrSealed, "is %s; it must be binary", TypeName(item[attrSealed]))
		return nil, r.Fault
	}
	const least, most = limiter.MinSecretLength + sealedOverhead, limiter.MaxSecretLength + sealedOverhead
	if n := len(b.Value); n < least || n > most {
		r.Fail(attrSealed, "has %d bytes; it must have %d to %d", n, least, most)
		return nil, r.Fault
	}
	return b.Value, nil
}
