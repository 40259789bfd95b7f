package dynamo

import (
	table "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/ratelimit/ratelimit/pkg/aggregator"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// The identity of DynamoDB where it removes an item because its time is over.
const (
	serviceType      = "Service"
	servicePrincipal = "dynamodb.amazonaws.com"
)

// expired returns the audit event that DynamoDB removed with a record; nil = it removed none. An
// event that a caller removed has not expired.
func expired(of string, k schema.Key, from *types.Record) *aggregator.Expired {
	u := from.UserIdentity
	if from.EventName != types.OperationTypeRemove || u == nil || text(u.Type) != serviceType || text(u.PrincipalId) != servicePrincipal {
		return nil
	}
	return schema.ArchivedAudit(of, k, nested(from.Dynamodb.OldImage))
}

// nested returns attributes of any type in the form of the table.
func nested(from map[string]types.AttributeValue) map[string]table.AttributeValue {
	to := make(map[string]table.AttributeValue, len(from))
	for name, v := range from {
		to[name] = nestedValue(v)
	}
	return to
}

func nestedValue(v types.AttributeValue) table.AttributeValue {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return &table.AttributeValueMemberS{Value: v.Value}
	case *types.AttributeValueMemberN:
		return &table.AttributeValueMemberN{Value: v.Value}
	case *types.AttributeValueMemberB:
		return &table.AttributeValueMemberB{Value: v.Value}
	case *types.AttributeValueMemberBOOL:
		return &table.AttributeValueMemberBOOL{Value: v.Value}
	case *types.AttributeValueMemberM:
		return &table.AttributeValueMemberM{Value: nested(v.Value)}
	case *types.AttributeValueMemberL:
		list := make([]table.AttributeValue, len(v.Value))
		for i, member := range v.Value {
			list[i] = nestedValue(member)
		}
		return &table.AttributeValueMemberL{Value: list}
	case *types.AttributeValueMemberSS:
		return &table.AttributeValueMemberSS{Value: v.Value}
	case *types.AttributeValueMemberNS:
		return &table.AttributeValueMemberNS{Value: v.Value}
	case *types.AttributeValueMemberBS:
		return &table.AttributeValueMemberBS{Value: v.Value}
	}
	return &table.AttributeValueMemberNULL{Value: true}
}
