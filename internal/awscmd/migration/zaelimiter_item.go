package migration

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// item is an item of the table.
type item map[string]types.AttributeValue

// text returns an attribute that is a text, "" for any other.
func (i item) text(attr string) string {
	if s, ok := i[attr].(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

// Kinds of attributes, as problems name them.
const (
	aText     = "a text"
	aNumber   = "a number"
	aFlag     = "true or false"
	aMap      = "a map"
	otherKind = "of another type"
)

// kindOf returns the kind of an attribute; "" = it is absent or null.
func (i item) kindOf(attr string) string {
	switch i[attr].(type) {
	case nil, *types.AttributeValueMemberNULL:
		return ""
	case *types.AttributeValueMemberS:
		return aText
	case *types.AttributeValueMemberN:
		return aNumber
	case *types.AttributeValueMemberBOOL:
		return aFlag
	case *types.AttributeValueMemberM:
		return aMap
	}
	return otherKind
}

// misfit returns the problem of an attribute of another kind than the package writes; "" = none.
func (i item) misfit(attr, want string) string {
	if got := i.kindOf(attr); got != "" && got != want {
		return fmt.Sprintf("has %.100q, which is left out: it is %s and must be %s", attr, got, want)
	}
	return ""
}

// number returns an attribute that is a whole number.
func (i item) number(attr string) (int64, bool) {
	n, ok := i[attr].(*types.AttributeValueMemberN)
	if !ok {
		return 0, false
	}
	v, err := strconv.ParseInt(n.Value, 10, 64)
	return v, err == nil
}

// flag returns an attribute that is true or false; false for any other.
func (i item) flag(attr string) bool {
	b, ok := i[attr].(*types.AttributeValueMemberBOOL)
	return ok && b.Value
}

func (i item) has(attr string) bool {
	_, found := i[attr]
	return found
}

// stringMap returns an attribute that is a map of texts, and the names of members that are
// no texts.
func (i item) stringMap(attr string) (texts map[string]string, others []string) {
	m, ok := i[attr].(*types.AttributeValueMemberM)
	if !ok {
		return nil, nil
	}
	for _, name := range slices.Sorted(maps.Keys(m.Value)) {
		s, ok := m.Value[name].(*types.AttributeValueMemberS)
		if !ok {
			others = append(others, name)
			continue
		}
		if texts == nil {
			texts = make(map[string]string, len(m.Value))
		}
		texts[name] = s.Value
	}
	return texts, others
}
