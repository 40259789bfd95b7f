package schema

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Attributes of secrets. A record has one of the two.
const (
	attrSealed = "sealed" // encrypted; binary
	attrSecret = "secret" // in clear text, as earlier releases stored it; binary
)

// sealedOverhead is how much longer a secret is when it is encrypted: nonce and tag of AES-GCM.
const sealedOverhead = 12 + 16

// StoredSecret is a secret as its record has it. One of the two is not nil.
type StoredSecret struct {
	Sealed []byte // encrypted
	Clear  []byte // as earlier releases stored it
}

// SecretItem returns the record of a secret that is encrypted.
func SecretItem(k Key, sealed []byte, now time.Time) map[string]types.AttributeValue {
	item := k.Attributes()
	item[attrSealed] = &types.AttributeValueMemberB{Value: sealed}
	item[AttrCreatedAt] = NumberAttribute(now.UnixMilli())
	return item
}

// ReplaceSecret puts a record of a secret in the place of another one, or of none. The refusal brings
// the record that is there.
func ReplaceSecret(table string, item map[string]types.AttributeValue, sealed []byte) *dynamodb.PutItemInput {
	in := PutNew(table, item)
	in.ConditionExpression = aws.String(*in.ConditionExpression + " OR #sealed = :sealed")
	in.ExpressionAttributeNames["#sealed"] = attrSealed
	in.ExpressionAttributeValues = map[string]types.AttributeValue{":sealed": &types.AttributeValueMemberB{Value: sealed}}
	return in
}

// ParseSecret reads the record of a secret. Its errors do not tell it.
func ParseSecret(table string, k Key, item map[string]types.AttributeValue) (StoredSecret, error) {
	r := NewReader(table, k, item)
	attr, overhead := attrSealed, sealedOverhead
	if item[attrSealed] == nil {
		attr, overhead = attrSecret, 0
	}
	b, ok := item[attr].(*types.AttributeValueMemberB)
	if !ok {
		r.Fail(attr, "is %s; it must be binary", TypeName(item[attr]))
		return StoredSecret{}, r.Fault
	}
	if n := len(b.Value) - overhead; n < limiter.MinSecretLength || n > limiter.MaxSecretLength {
		r.Fail(attr, "has %d bytes; it must have %d to %d", len(b.Value), limiter.MinSecretLength+overhead, limiter.MaxSecretLength+overhead)
		return StoredSecret{}, r.Fault
	}
	if attr == attrSecret {
		return StoredSecret{Clear: b.Value}, nil
	}
	return StoredSecret{Sealed: b.Value}, nil
}
