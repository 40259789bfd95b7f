package schema

import (
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Expression builds the condition and the update of one UpdateItem. Every name and
// value goes through a placeholder.
type Expression struct {
	names  []string               // attributes, by the number of their placeholder
	values []types.AttributeValue // by the number of their placeholder

	condition, set, add, remove strings.Builder
}

const (
	// usualNames is how many names, and how many values, an expression has room for at first.
	usualNames = 16
	// usualText is how many bytes a section has room for at first.
	usualText = 64
)

// NewExpression returns an expression without conditions that changes nothing.
func NewExpression() *Expression {
	return &Expression{names: make([]string, 0, usualNames), values: make([]types.AttributeValue, 0, usualNames)}
}

// The first placeholders are cut out of these: each write of an item has some. Their numbers have two digits.
const (
	namePlaceholders  = "#10#11#12#13#14#15#16#17#18#19#20#21#22#23#24#25#26#27#28#29#30#31#32#33#34#35#36#37#38#39#40#41"
	valuePlaceholders = ":10:11:12:13:14:15:16:17:18:19:20:21:22:23:24:25:26:27:28:29:30:31:32:33:34:35:36:37:38:39:40:41"
)

// placeholder returns one of the placeholders of which some are the first ones.
func placeholder(first string, n int) string {
	const size, least = len("#10"), 10
	if at := n * size; at < len(first) {
		return first[at : at+size]
	}
	return first[:1] + strconv.Itoa(least+n)
}

// name returns the placeholder of an attribute.
func (e *Expression) name(attr string) string {
	n := slices.Index(e.names, attr)
	if n < 0 {
		n = len(e.names)
		e.names = append(e.names, attr)
	}
	return placeholder(namePlaceholders, n)
}

// value returns the placeholder of a value.
func (e *Expression) value(v types.AttributeValue) string {
	e.values = append(e.values, v)
	return placeholder(valuePlaceholders, len(e.values)-1)
}

// join appends the parts to a section, behind a separator unless they are its first.
func join(b *strings.Builder, separator string, parts ...string) {
	if b.Len() == 0 {
		b.Grow(usualText)
	} else {
		b.WriteString(separator)
	}
	for _, p := range parts {
		b.WriteString(p)
	}
}

// Require adds a comparison to the condition. The operator is one of DynamoDB's: "=",
// "<>", "<", "<=", ">" or ">=". It does not hold for an attribute that is absent, but "<>" does.
func (e *Expression) Require(attr, operator string, v types.AttributeValue) {
	join(&e.condition, " AND ", e.name(attr), operator, e.value(v))
}

// RequireAbsent adds to the condition that there is no such attribute.
func (e *Expression) RequireAbsent(attr string) {
	join(&e.condition, " AND ", "attribute_not_exists(", e.name(attr), ")")
}

// RequireAbsentOr adds to the condition that there is no such attribute, or that it compares to a value so.
func (e *Expression) RequireAbsentOr(attr, operator string, v types.AttributeValue) {
	p := e.name(attr)
	join(&e.condition, " AND ", "(attribute_not_exists(", p, ") OR ", p, operator, e.value(v), ")")
}

// Set sets an attribute.
func (e *Expression) Set(attr string, v types.AttributeValue) {
	join(&e.set, ", ", e.name(attr), "=", e.value(v))
}

// SetDifference sets an attribute to a number less another attribute.
func (e *Expression) SetDifference(attr string, n int64, other string) {
	join(&e.set, ", ", e.name(attr), "=", e.value(NumberAttribute(n)), "-", e.name(other))
}

// RaiseTo sets a number, on the condition that it is not above n now.
func (e *Expression) RaiseTo(attr string, n int64) {
	p := e.value(NumberAttribute(n))
	join(&e.condition, " AND ", e.name(attr), "<=", p)
	join(&e.set, ", ", e.name(attr), "=", p)
}

// Add adds to a number; 0 changes nothing and is left out.
func (e *Expression) Add(attr string, n int64) {
	if n != 0 {
		e.AddValue(attr, NumberAttribute(n))
	}
}

// AddValue adds to a number.
func (e *Expression) AddValue(attr string, n types.AttributeValue) {
	join(&e.add, ", ", e.name(attr), " ", e.value(n))
}

// Remove removes an attribute, which may be absent.
func (e *Expression) Remove(attr string) { join(&e.remove, ", ", e.name(attr)) }

// Input returns the UpdateItem, which answers with the item as it is afterwards,
// or as it is when the condition does not hold.
func (e *Expression) Input(table string, k Key) *dynamodb.UpdateItemInput {
	var update strings.Builder
	update.Grow(usualText + e.set.Len() + e.add.Len() + e.remove.Len())
	for _, section := range []struct {
		word string
		b    *strings.Builder
	}{{"SET ", &e.set}, {"ADD ", &e.add}, {"REMOVE ", &e.remove}} {
		if section.b.Len() > 0 {
			join(&update, " ", section.word, section.b.String())
		}
	}
	names, values := make(map[string]string, len(e.names)), make(map[string]types.AttributeValue, len(e.values))
	for n, attr := range e.names {
		names[placeholder(namePlaceholders, n)] = attr
	}
	for n, v := range e.values {
		values[placeholder(valuePlaceholders, n)] = v
	}
	return &dynamodb.UpdateItemInput{
		TableName:                           aws.String(table),
		Key:                                 k.Attributes(),
		ConditionExpression:                 textOf(&e.condition),
		UpdateExpression:                    textOf(&update),
		ExpressionAttributeNames:            names,
		ExpressionAttributeValues:           values,
		ReturnValues:                        types.ReturnValueAllNew,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}

// Transact returns the update as a part of a transaction.
func (e *Expression) Transact(table string, k Key) types.TransactWriteItem {
	in := e.Input(table, k)
	return types.TransactWriteItem{Update: &types.Update{
		TableName: in.TableName, Key: in.Key, ConditionExpression: in.ConditionExpression, UpdateExpression: in.UpdateExpression,
		ExpressionAttributeNames: in.ExpressionAttributeNames, ExpressionAttributeValues: in.ExpressionAttributeValues,
		ReturnValuesOnConditionCheckFailure: in.ReturnValuesOnConditionCheckFailure,
	}}
}

// textOf returns the text of a section, nil when it is empty: DynamoDB refuses empty ones.
func textOf(b *strings.Builder) *string {
	if b.Len() == 0 {
		return nil
	}
	return aws.String(b.String())
}

// PutNew returns the PutItem of an item, on the condition that there is none with its key.
// A refusal shows the item that is there.
func PutNew(table string, item map[string]types.AttributeValue) *dynamodb.PutItemInput {
	return &dynamodb.PutItemInput{
		TableName: &table, Item: item,
		ConditionExpression:                 aws.String("attribute_not_exists(#pk)"),
		ExpressionAttributeNames:            map[string]string{"#pk": AttrPK},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}

// TransactPutNew is [PutNew] as a part of a transaction.
func TransactPutNew(table string, item map[string]types.AttributeValue) types.TransactWriteItem {
	in := PutNew(table, item)
	return types.TransactWriteItem{Put: &types.Put{
		TableName: in.TableName, Item: in.Item, ConditionExpression: in.ConditionExpression, ExpressionAttributeNames: in.ExpressionAttributeNames,
		ReturnValuesOnConditionCheckFailure: in.ReturnValuesOnConditionCheckFailure,
	}}
}
