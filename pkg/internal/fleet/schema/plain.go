package schema

import (
	"encoding/json"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// plain returns attributes as values for JSON.
func plain(from map[string]types.AttributeValue) map[string]any {
	to := make(map[string]any, len(from))
	for name, v := range from {
		to[name] = plainValue(v)
	}
	return to
}

func plainValue(v types.AttributeValue) any {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return v.Value
	case *types.AttributeValueMemberN:
		return json.Number(v.Value)
	case *types.AttributeValueMemberB:
		return v.Value
	case *types.AttributeValueMemberBOOL:
		return v.Value
	case *types.AttributeValueMemberM:
		return plain(v.Value)
	case *types.AttributeValueMemberL:
		list := make([]any, len(v.Value))
		for i, member := range v.Value {
			list[i] = plainValue(member)
		}
		return list
	case *types.AttributeValueMemberSS:
		return v.Value
	case *types.AttributeValueMemberNS:
		return v.Value
	case *types.AttributeValueMemberBS:
		return v.Value
	}
	return nil
}
