package stack

import (
	"encoding/json"

	"github.com/ratelimit/ratelimit/pkg/dynamo"
)

// logicalTable names the table in a template.
const logicalTable = "Table"

// tableResource returns the table as [dynamo.TableInput] describes it. CloudFormation has
// the API's names for these properties.
func tableResource(o Options) (object, error) {
	in := dynamo.TableInput(o.Name)
	properties := object{
		"TableName":                 o.Name,
		"BillingMode":               string(in.BillingMode),
		"StreamSpecification":       object{"StreamViewType": string(in.StreamSpecification.StreamViewType)},
		"TimeToLiveSpecification":   object{"AttributeName": dynamo.TTLAttribute, "Enabled": true},
		"DeletionProtectionEnabled": o.DeletionProtection,
	}
	for name, value := range map[string]any{
		"AttributeDefinitions": in.AttributeDefinitions, "KeySchema": in.KeySchema, "GlobalSecondaryIndexes": in.GlobalSecondaryIndexes,
	} {
		plain, err := asPlain(value)
		if err != nil {
			return nil, err
		}
		properties[name] = plain
	}
	if o.RecoveryDays > 0 {
		properties["PointInTimeRecoverySpecification"] = object{"PointInTimeRecoveryEnabled": true, "RecoveryPeriodInDays": o.RecoveryDays}
	}
	return kept(resource("AWS::DynamoDB::Table", properties), o), nil
}

// kept says whether a resource with data outlives the stack.
func kept(r object, o Options) object {
	if !o.DeletionProtection {
		return passing(r)
	}
	r["DeletionPolicy"], r["UpdateReplacePolicy"] = "RetainExceptOnCreate", "Retain"
	return r
}

// passing has a resource go with the stack.
func passing(r object) object {
	r["DeletionPolicy"], r["UpdateReplacePolicy"] = "Delete", "Delete"
	return r
}

// asPlain returns a value of the SDK as JSON has it, without unset members.
func asPlain(value any) (any, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var plain any
	if err := json.Unmarshal(text, &plain); err != nil {
		return nil, err
	}
	return pruned(plain), nil
}

// pruned removes null from objects.
func pruned(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for name, member := range v {
			if member == nil {
				delete(v, name)
			} else {
				v[name] = pruned(member)
			}
		}
	case []any:
		for i := range v {
			v[i] = pruned(v[i])
		}
	}
	return value
}
