package dynamo

import (
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// expression builds the condition and the update of one UpdateItem. Every name and
// value goes through a placeholder.
type expression struct {
	names  map[string]string // placeholders by attribute
	values map[string]types.AttributeValue

	condition, set, add, remove strings.Builder
}

func newExpression() *expression {
	return &expression{names: make(map[string]string, 16), values: make(map[string]types.AttributeValue, 16)}
}

// name returns the placeholder of an attribute.
func (e *expression) name(attr string) string {
	p, ok := e.names[attr]
	if !ok {
		p = "#" + strconv.Itoa(len(e.names))
		e.names[attr] = p
	}
	return p
}

// value returns the placeholder of a value.
func (e *expression) value(v types.AttributeValue) string {
	p := ":" + strconv.Itoa(len(e.values))
	e.values[p] = v
	return p
}

// join appends the parts to a section, behind a separator unless they are its first.
func join(b *strings.Builder, separator string, parts ...string) {
	if b.Len() > 0 {
		b.WriteString(separator)
	}
	for _, p := range parts {
		b.WriteString(p)
	}
}

// require adds a comparison to the condition.
func (e *expression) require(attr, operator string, v types.AttributeValue) {
	join(&e.condition, " AND ", e.name(attr), operator, e.value(v))
}

// requireAbsent adds to the condition that there is no such attribute.
func (e *expression) requireAbsent(attr string) {
	join(&e.condition, " AND ", "attribute_not_exists(", e.name(attr), ")")
}

func (e *expression) setTo(attr string, v types.AttributeValue) {
	join(&e.set, ", ", e.name(attr), "=", e.value(v))
}

// setToLess sets an attribute to a number less another attribute.
func (e *expression) setToLess(attr string, n int64, other string) {
	join(&e.set, ", ", e.name(attr), "=", e.value(numberAttribute(n)), "-", e.name(other))
}

// addTo adds to a number; 0 changes nothing and is left out.
func (e *expression) addTo(attr string, n int64) {
	if n != 0 {
		join(&e.add, ", ", e.name(attr), " ", e.value(numberAttribute(n)))
	}
}

func (e *expression) removeAttr(attr string) { join(&e.remove, ", ", e.name(attr)) }

// input returns the UpdateItem, which answers with the item as it is afterwards,
// or as it is when the condition does not hold.
func (e *expression) input(table string, k key) *dynamodb.UpdateItemInput {
	var update strings.Builder
	for _, section := range []struct {
		word string
		b    *strings.Builder
	}{{"SET ", &e.set}, {"ADD ", &e.add}, {"REMOVE ", &e.remove}} {
		if section.b.Len() > 0 {
			join(&update, " ", section.word, section.b.String())
		}
	}
	names := make(map[string]string, len(e.names))
	for attr, p := range e.names {
		names[p] = attr
	}
	return &dynamodb.UpdateItemInput{
		TableName:                           aws.String(table),
		Key:                                 k.attributes(),
		ConditionExpression:                 aws.String(e.condition.String()),
		UpdateExpression:                    aws.String(update.String()),
		ExpressionAttributeNames:            names,
		ExpressionAttributeValues:           e.values,
		ReturnValues:                        types.ReturnValueAllNew,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}
