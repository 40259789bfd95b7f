package dynamofake

import (
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// action is one change of one attribute.
type action struct {
	section string // SET, REMOVE, ADD
	name    string
	value   operand // nil for REMOVE
}

// update is an update expression: changes of different attributes.
type update []action

// apply returns a changed copy of an item. Every operand is read from the item as
// it was.
func (u update) apply(old item) (item, error) {
	out := make(item, len(old)+len(u))
	maps.Copy(out, old)
	for _, a := range u {
		if a.section == "REMOVE" {
			delete(out, a.name)
			continue
		}
		v, err := must(a.value, old)
		if err != nil {
			return nil, err
		}
		if a.section == "ADD" {
			if v, err = added(old[a.name], v); err != nil {
				return nil, err
			}
		}
		out[a.name] = v
	}
	return out, nil
}

// names returns the attributes that the update names.
func (u update) names() []string {
	names := make([]string, len(u))
	for i, a := range u {
		names[i] = a.name
	}
	return names
}

// added is the result of ADD: the sum of numbers, the union of sets.
func added(old, v types.AttributeValue) (types.AttributeValue, error) {
	if old == nil {
		return v, nil
	}
	if typeOf(old) != typeOf(v) {
		return nil, wrongType()
	}
	x, isNumber := old.(*types.AttributeValueMemberN)
	y, ok := v.(*types.AttributeValueMemberN)
	if isNumber && ok {
		sum, err := addNumbers(x.Value, y.Value, false)
		return &types.AttributeValueMemberN{Value: sum}, err
	}
	union := slices.Clone(setElements(old))
	for _, e := range setElements(v) {
		if !slices.Contains(union, e) {
			union = append(union, e)
		}
	}
	return newSet(old, union), nil
}
