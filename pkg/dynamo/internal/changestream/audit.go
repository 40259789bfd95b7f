package changestream

import (
	"encoding/json"
	"errors"

	table "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/ratelimit/ratelimit/pkg/aggregator"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// The identity of DynamoDB where it removes an item because its time is over.
const (
	serviceType      = "Service"
	servicePrincipal = "dynamodb.amazonaws.com"
)

// errNoLine says that a line of JSON cannot have the time of an event.
var errNoLine = errors.New("the event's time is out of the years 0 to 9999")

// expired returns the audit event that DynamoDB removed with a record; nil = it removed none. An
// event that a caller removed has not expired.
func expired(of string, k schema.Key, from *types.Record) *aggregator.Expired {
	u := from.UserIdentity
	if from.EventName != types.OperationTypeRemove || u == nil || text(u.Type) != serviceType || text(u.PrincipalId) != servicePrincipal {
		return nil
	}
	ns, id, ok := schema.AuditOf(k)
	if !ok {
		return nil
	}
	e := &aggregator.Expired{Namespace: ns}
	e.Event, e.Problem = schema.ParseAudit(of, nested(from.Dynamodb.OldImage))
	if year := e.Event.Time.Year(); e.Problem == nil && (year < 0 || year > 9999) {
		e.Problem = errNoLine
	}
	if e.Problem != nil {
		e.Event = limiter.AuditEvent{ID: id}
		e.Item = plain(from.Dynamodb.OldImage)
	}
	return e
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
