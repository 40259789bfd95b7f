package dynamofake_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"pgregory.net/rapid"
)

var (
	anyName  = rapid.SampledFrom([]string{"#s", "#n", "#b", "#t", "#z", "#l", "#m", "#ss", "#ns", "#bs", "#f", "#big", "#e", "#x", "#y", "#GSI1PK", "#GSI1SK", "#GSI2PK"})
	anyValue = rapid.SampledFrom([]string{":s", ":hel", ":zz", ":e", ":n", ":one", ":neg", ":big", ":b", ":t", ":l", ":m", ":ss", ":ss1", ":ns", ":ns1", ":bs1"})
	// Numbers, more often than chance would have them.
	number = rapid.SampledFrom([]string{"#n", "#f", "#x", ":n", ":one", ":neg", ":big"})
)

// drawOperand draws an operand of a condition.
func drawOperand(t *rapid.T) string {
	switch rapid.IntRange(0, 3).Draw(t, "operand") {
	case 0:
		return anyValue.Draw(t, "value")
	case 1:
		return number.Draw(t, "number")
	}
	return anyName.Draw(t, "name")
}

// drawCondition draws a condition of some depth.
func drawCondition(t *rapid.T, depth int) string {
	kind := rapid.IntRange(0, 7).Draw(t, "condition")
	if depth > 0 {
		switch kind {
		case 0, 1:
			return drawCondition(t, depth-1) + " AND " + drawCondition(t, depth-1)
		case 2:
			return drawCondition(t, depth-1) + " OR " + drawCondition(t, depth-1)
		case 3:
			return "(" + drawCondition(t, depth-1) + ")"
		}
	}
	switch kind {
	case 4:
		return fmt.Sprintf("%s BETWEEN %s AND %s", drawOperand(t), drawOperand(t), drawOperand(t))
	case 5:
		return rapid.SampledFrom([]string{"attribute_exists", "attribute_not_exists"}).Draw(t, "function") + "(" + anyName.Draw(t, "name") + ")"
	case 6:
		return "begins_with(" + anyName.Draw(t, "name") + ", " + drawOperand(t) + ")"
	}
	operator := rapid.SampledFrom([]string{"=", "<>", "<", "<=", ">", ">="}).Draw(t, "operator")
	return drawOperand(t) + " " + operator + " " + drawOperand(t)
}

// drawAssigned draws the right side of SET.
func drawAssigned(t *rapid.T) string {
	operand := func() string { return number.Draw(t, "number") }
	switch rapid.IntRange(0, 4).Draw(t, "assigned") {
	case 0:
		return operand() + " + " + operand()
	case 1:
		return operand() + " - " + operand()
	case 2:
		return anyValue.Draw(t, "value")
	case 3:
		return anyName.Draw(t, "name")
	}
	return operand()
}

// drawUpdate draws an update of distinct attributes, mostly. Keys of indexes stay
// strings, because DynamoDB Local accepts others in updates and DynamoDB does not.
func drawUpdate(t *rapid.T) string {
	sections := map[string][]string{}
	for range rapid.IntRange(1, 4).Draw(t, "actions") {
		name := anyName.Draw(t, "updated")
		isKey := strings.HasPrefix(name, "#GSI")
		switch section := rapid.SampledFrom([]string{"SET", "SET", "ADD", "ADD", "REMOVE"}).Draw(t, "section"); {
		case isKey && section != "REMOVE":
			sections["SET"] = append(sections["SET"], name+" = "+rapid.SampledFrom([]string{":s", ":zz", name}).Draw(t, "key"))
		case section == "SET":
			sections[section] = append(sections[section], name+" = "+drawAssigned(t))
		case section == "ADD":
			if rapid.Bool().Draw(t, "to a number") {
				name = number.Filter(func(s string) bool { return s[0] == '#' }).Draw(t, "number")
			}
			sections[section] = append(sections[section], name+" "+anyValue.Draw(t, "added"))
		default:
			sections[section] = append(sections[section], name)
		}
	}
	parts := make([]string, 0, len(sections))
	for _, section := range slices.Sorted(maps.Keys(sections)) {
		parts = append(parts, section+" "+strings.Join(sections[section], ", "))
	}
	return strings.Join(parts, " ")
}

// fatal ends a property at its first error, because later errors follow from it.
type fatal struct{ *rapid.T }

func (f fatal) Errorf(format string, args ...any) {
	f.Helper()
	f.Fatalf(format, args...)
}

// Any sequence of writes leaves the same item in the fake as in DynamoDB Local, and
// returns the same replies on the way.
func TestAnySequence(t *testing.T) {
	p := newPair(t)
	ctx := context.WithoutCancel(t.Context())
	rapid.Check(t, func(t *rapid.T) {
		// A failed attempt leaves different items; both forget them.
		for _, c := range []client{p.real, p.fake} {
			if _, err := c.PutItem(ctx, &dynamodb.PutItemInput{TableName: p.table, Item: base()}); err != nil {
				t.Fatal(err)
			}
		}
		for range rapid.IntRange(1, 10).Draw(t, "writes") {
			var condition *string
			if rapid.Bool().Draw(t, "conditional") {
				c := drawCondition(t, 3)
				condition = &c
			}
			switch rapid.IntRange(0, 9).Draw(t, "write") {
			case 0:
				p.delete(ctx, fatal{t}, condition)
			case 1:
				p.put(ctx, fatal{t}, base(), condition)
			default:
				u := drawUpdate(t)
				p.update(ctx, fatal{t}, &u, condition, rapid.SampledFrom([]types.ReturnValue{types.ReturnValueAllNew, types.ReturnValueAllOld, types.ReturnValueUpdatedNew, types.ReturnValueUpdatedOld}).Draw(t, "returned"))
			}
		}
	})
}
