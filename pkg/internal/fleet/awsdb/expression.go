package awsdb

import (
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// expression is a write in DynamoDB's language. Every name and value goes through a placeholder.
type expression struct {
	names  []string               // attributes, by the number of their placeholder
	values []types.AttributeValue // by the number of their placeholder

	condition, set, add, remove strings.Builder
}

// usualText is how many bytes a section has room for at first.
const usualText = 64

// expressionOf returns the expression of a write.
func expressionOf(w *schema.ItemWrite) *expression {
	n := len(w.Conditions) + len(w.Changes)
	e := &expression{names: make([]string, 0, n), values: make([]types.AttributeValue, 0, n)}
	separator := " AND "
	if w.OrNew && len(w.Conditions) > 0 {
		join(&e.condition, "", "attribute_not_exists(", e.name(schema.AttrPK), ")")
		separator = " OR "
	}
	for i := range w.Conditions {
		e.require(&w.Conditions[i], separator)
		separator = " AND " // which is before OR
	}
	for i := range w.Changes {
		e.change(&w.Changes[i])
	}
	return e
}

// require appends a condition.
func (e *expression) require(c *schema.Condition, separator string) {
	name := e.name(c.Attr)
	switch c.Kind {
	case schema.Compare:
		join(&e.condition, separator, name, c.Operator, e.value(c.Value))
	case schema.Absent:
		join(&e.condition, separator, "attribute_not_exists(", name, ")")
	case schema.Present:
		join(&e.condition, separator, "attribute_exists(", name, ")")
	case schema.AbsentOrCompare:
		join(&e.condition, separator, "(attribute_not_exists(", name, ") OR ", name, c.Operator, e.value(c.Value), ")")
	}
}

// change appends a change.
func (e *expression) change(c *schema.Change) {
	name := e.name(c.Attr)
	switch c.Kind {
	case schema.Set:
		join(&e.set, ", ", name, "=", e.value(c.Value))
	case schema.Add:
		join(&e.add, ", ", name, " ", e.value(c.Value))
	case schema.Remove:
		join(&e.remove, ", ", name)
	case schema.AddAbove: // no update that DynamoDB gets has it
	}
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
func (e *expression) name(attr string) string {
	n := slices.Index(e.names, attr)
	if n < 0 {
		n = len(e.names)
		e.names = append(e.names, attr)
	}
	return placeholder(namePlaceholders, n)
}

// value returns the placeholder of a value.
func (e *expression) value(v types.AttributeValue) string {
	n := slices.Index(e.values, v) // such as an id that is compared and set
	if n < 0 {
		n = len(e.values)
		e.values = append(e.values, v)
	}
	return placeholder(valuePlaceholders, n)
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

// textOf returns the text of a section, nil when it is empty: DynamoDB refuses empty ones.
func textOf(b *strings.Builder) *string {
	if b.Len() == 0 {
		return nil
	}
	return aws.String(b.String())
}

// changes returns the text of all changes.
func (e *expression) changes() *string {
	var all strings.Builder
	all.Grow(usualText + e.set.Len() + e.add.Len() + e.remove.Len())
	for _, section := range []struct {
		word string
		b    *strings.Builder
	}{{"SET ", &e.set}, {"ADD ", &e.add}, {"REMOVE ", &e.remove}} {
		if section.b.Len() > 0 {
			join(&all, " ", section.word, section.b.String())
		}
	}
	return textOf(&all)
}

// placeholders returns the meanings of the placeholders; nil where there are none, as DynamoDB refuses empty maps.
func (e *expression) placeholders() (names map[string]string, values map[string]types.AttributeValue) {
	if len(e.names) > 0 {
		names = make(map[string]string, len(e.names))
	}
	if len(e.values) > 0 {
		values = make(map[string]types.AttributeValue, len(e.values))
	}
	for n, attr := range e.names {
		names[placeholder(namePlaceholders, n)] = attr
	}
	for n, v := range e.values {
		values[placeholder(valuePlaceholders, n)] = v
	}
	return names, values
}

// refusal returns which item a refusal of a write shows.
func refusal(w *schema.ItemWrite) types.ReturnValuesOnConditionCheckFailure {
	if w.Shows {
		return types.ReturnValuesOnConditionCheckFailureAllOld
	}
	return ""
}

// answer returns which attributes the reply to an update has.
func answer(w *schema.ItemWrite) types.ReturnValue {
	switch w.Answer {
	case schema.AnswerItem:
		return types.ReturnValueAllNew
	case schema.AnswerUpdated:
		return types.ReturnValueUpdatedNew
	case schema.AnswerNothing:
	}
	return ""
}

// updating returns the request of an update of a table.
func updating(table string, w *schema.ItemWrite) *dynamodb.UpdateItemInput {
	e := expressionOf(w)
	names, values := e.placeholders()
	return &dynamodb.UpdateItemInput{
		TableName: &table, Key: w.Key.Attributes(), ConditionExpression: textOf(&e.condition), UpdateExpression: e.changes(),
		ExpressionAttributeNames: names, ExpressionAttributeValues: values,
		ReturnValues: answer(w), ReturnValuesOnConditionCheckFailure: refusal(w),
	}
}

// putting returns the request of a put.
func putting(table string, w *schema.ItemWrite) *dynamodb.PutItemInput {
	e := expressionOf(w)
	names, values := e.placeholders()
	return &dynamodb.PutItemInput{
		TableName: &table, Item: w.Item, ConditionExpression: textOf(&e.condition),
		ExpressionAttributeNames: names, ExpressionAttributeValues: values, ReturnValuesOnConditionCheckFailure: refusal(w),
	}
}

// deleting returns the request of a deletion.
func deleting(table string, w *schema.ItemWrite) *dynamodb.DeleteItemInput {
	e := expressionOf(w)
	names, values := e.placeholders()
	return &dynamodb.DeleteItemInput{
		TableName: &table, Key: w.Key.Attributes(), ConditionExpression: textOf(&e.condition),
		ExpressionAttributeNames: names, ExpressionAttributeValues: values, ReturnValuesOnConditionCheckFailure: refusal(w),
	}
}

// transacting returns a write as a part of a transaction.
func transacting(table string, w *schema.ItemWrite) (part types.TransactWriteItem) {
	switch w.Kind {
	case schema.Update:
		in := updating(table, w)
		part.Update = &types.Update{
			TableName: in.TableName, Key: in.Key, ConditionExpression: in.ConditionExpression, UpdateExpression: in.UpdateExpression,
			ExpressionAttributeNames: in.ExpressionAttributeNames, ExpressionAttributeValues: in.ExpressionAttributeValues,
			ReturnValuesOnConditionCheckFailure: in.ReturnValuesOnConditionCheckFailure,
		}
	case schema.Put:
		in := putting(table, w)
		part.Put = &types.Put{
			TableName: in.TableName, Item: in.Item, ConditionExpression: in.ConditionExpression, ExpressionAttributeNames: in.ExpressionAttributeNames,
			ExpressionAttributeValues: in.ExpressionAttributeValues, ReturnValuesOnConditionCheckFailure: in.ReturnValuesOnConditionCheckFailure,
		}
	case schema.Delete:
		in := deleting(table, w)
		part.Delete = &types.Delete{
			TableName: in.TableName, Key: in.Key, ConditionExpression: in.ConditionExpression, ExpressionAttributeNames: in.ExpressionAttributeNames,
			ExpressionAttributeValues: in.ExpressionAttributeValues, ReturnValuesOnConditionCheckFailure: in.ReturnValuesOnConditionCheckFailure,
		}
	}
	return part
}
