package dynamofake

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// operand is a part of an expression that has a value.
type operand interface {
	// of is the value for an item, nil when there is none.
	of(it item) (types.AttributeValue, error)
}

// The operands. arithmetic stands in updates alone.
type (
	attribute  string
	literal    struct{ v types.AttributeValue }
	arithmetic struct {
		left, right operand
		minus       bool
	}
)

func (a attribute) of(it item) (types.AttributeValue, error) { return it[string(a)], nil }

func (l literal) of(item) (types.AttributeValue, error) { return l.v, nil }

func (o arithmetic) of(it item) (types.AttributeValue, error) {
	left, right, err := both(o.left, o.right, it)
	if err != nil {
		return nil, err
	}
	x, okX := left.(*types.AttributeValueMemberN)
	y, okY := right.(*types.AttributeValueMemberN)
	if !okX || !okY {
		return nil, wrongType()
	}
	sum, err := addNumbers(x.Value, y.Value, o.minus)
	if err != nil {
		return nil, err
	}
	return &types.AttributeValueMemberN{Value: sum}, nil
}

func both(left, right operand, it item) (x, y types.AttributeValue, err error) {
	if x, err = must(left, it); err != nil {
		return nil, nil, err
	}
	y, err = must(right, it)
	return x, y, err
}

// must is the value of an operand that an update needs.
func must(o operand, it item) (types.AttributeValue, error) {
	v, err := o.of(it)
	if err == nil && v == nil {
		err = invalid("The provided expression refers to an attribute that does not exist in the item")
	}
	return v, err
}

func wrongType() error {
	return invalid("An operand in the update expression has an incorrect data type")
}
