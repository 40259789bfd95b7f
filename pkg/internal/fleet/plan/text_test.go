package plan_test

import (
	"encoding/hex"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// textOf returns an attribute for people.
func textOf(v types.AttributeValue) string {
	switch v := v.(type) {
	case *types.AttributeValueMemberN:
		return v.Value
	case *types.AttributeValueMemberB:
		return hex.EncodeToString(v.Value)
	case *types.AttributeValueMemberS:
		return v.Value
	}
	return "none"
}
