package dynamofake

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Limits of DynamoDB, in bytes.
const (
	maxHash = 2048
	maxSort = 1024
	maxItem = 400 << 10
)

// address is the place of an item in its table.
type address struct{ hash, sort string }

// place is a key value as a part of an address.
func place(v types.AttributeValue) string {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return v.Value
	case *types.AttributeValueMemberN:
		return v.Value
	case *types.AttributeValueMemberB:
		return string(v.Value)
	}
	return ""
}

// keys names the key attributes of a table or an index; sort may be "".
type keys struct{ hash, sort string }

func (k keys) names() []string {
	if k.sort == "" {
		return []string{k.hash}
	}
	return []string{k.hash, k.sort}
}
