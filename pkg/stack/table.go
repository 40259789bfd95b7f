package stack

import (
	"encoding/json"

	"github.com/ratelimit/ratelimit/pkg/dynamo"
)

// logicalTable names the table in a template.
const logicalTable = "Table"

// parameterStream is of the stream of an existing table.
const parameterStream = "TableStreamArn"

// addTable adds the table, unless it exists, and outputs of it.
func (t *builder) addTable() error {
	if !t.o.ExistingTable {
		table, err := tableResource(t.o)
		if err != nil {
			return err
		}
		t.resources[logicalTable] = table
	}
	t.output("TableName", "Name of the table: store.dynamodb.table", t.tableName())
	t.output("TableArn", "ARN of the table", t.tableARN(""))
	if !t.o.ExistingTable || t.o.StreamARN != "" {
		t.output("StreamArn", "ARN of the table's stream", t.stream())
	}
	return nil
}

// tableName is the name of the table.
func (t *builder) tableName() any {
	if t.o.ExistingTable {
		return t.o.Name
	}
	return ref(logicalTable)
}

// tableARN is the ARN of the table, or of a part of it.
func (t *builder) tableARN(part string) any {
	switch {
	case t.o.ExistingTable:
		return sub("arn:${AWS::Partition}:dynamodb:${AWS::Region}:${AWS::AccountId}:table/" + t.o.Name + part)
	case part == "":
		return getAtt(logicalTable, "Arn")
	default:
		return sub("${" + logicalTable + ".Arn}" + part)
	}
}

// stream is the ARN of the table's stream.
func (t *builder) stream() any {
	switch {
	case !t.o.ExistingTable:
		return getAtt(logicalTable, "StreamArn")
	case t.o.StreamARN == "":
		t.parameters[parameterStream] = object{"Type": "String", "Description": "ARN of the stream of the table " + t.o.Name, "MinLength": 1}
		return ref(parameterStream)
	default:
		return t.o.StreamARN
	}
}

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
	table := resource("AWS::DynamoDB::Table", properties)
	if !o.DeletionProtection {
		return passing(table), nil
	}
	table["DeletionPolicy"], table["UpdateReplacePolicy"] = "Retain", "Retain"
	return table, nil
}

// kept has a resource outlive the stack, unless it was made by a change that is rolled back.
func kept(r object) object {
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

func (t *builder) scope(space string) scope {
	return scope{table: t.tableARN(""), indexes: t.tableARN("/index/*"), space: space}
}
