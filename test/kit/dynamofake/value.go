package dynamofake

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// item is the attributes of an item. Items in a table and their values are never
// changed, only replaced.
type item = map[string]types.AttributeValue

// typeOf is the type of a value as expressions and messages name it, "" for none.
func typeOf(v types.AttributeValue) string {
	switch v.(type) {
	case *types.AttributeValueMemberS:
		return "S"
	case *types.AttributeValueMemberN:
		return "N"
	case *types.AttributeValueMemberB:
		return "B"
	case *types.AttributeValueMemberBOOL:
		return "BOOL"
	case *types.AttributeValueMemberNULL:
		return "NULL"
	case *types.AttributeValueMemberL:
		return "L"
	case *types.AttributeValueMemberM:
		return "M"
	case *types.AttributeValueMemberSS:
		return "SS"
	case *types.AttributeValueMemberNS:
		return "NS"
	case *types.AttributeValueMemberBS:
		return "BS"
	}
	return ""
}

// admit copies a value of a request, with numbers in canonical form, and refuses
// values that DynamoDB does not accept.
func admit(v types.AttributeValue) (types.AttributeValue, error) {
	switch v := v.(type) {
	case *types.AttributeValueMemberN:
		n, err := canonical(v.Value)
		return &types.AttributeValueMemberN{Value: n}, err
	case *types.AttributeValueMemberNULL:
		if !v.Value {
			return nil, invalid("One or more parameter values were invalid: Null attribute value types must have the value of true")
		}
		return &types.AttributeValueMemberNULL{Value: true}, nil
	case *types.AttributeValueMemberL:
		list := make([]types.AttributeValue, len(v.Value))
		for i, e := range v.Value {
			var err error
			if list[i], err = admit(e); err != nil {
				return nil, err
			}
		}
		return &types.AttributeValueMemberL{Value: list}, nil
	case *types.AttributeValueMemberM:
		m, err := admitItem(v.Value)
		return &types.AttributeValueMemberM{Value: m}, err
	case *types.AttributeValueMemberSS, *types.AttributeValueMemberNS, *types.AttributeValueMemberBS:
		return admitSet(v)
	case *types.AttributeValueMemberS, *types.AttributeValueMemberB, *types.AttributeValueMemberBOOL:
		return clone(v), nil
	}
	return nil, invalid("Supplied AttributeValue is empty, must contain exactly one of the supported datatypes")
}

func admitItem(it item) (item, error) {
	out := make(item, len(it))
	for name, v := range it {
		a, err := admit(v)
		if err != nil {
			return nil, err
		}
		out[name] = a
	}
	return out, nil
}

func admitSet(v types.AttributeValue) (types.AttributeValue, error) {
	v = clone(v)
	if ns, ok := v.(*types.AttributeValueMemberNS); ok {
		for i, n := range ns.Value {
			var err error
			if ns.Value[i], err = canonical(n); err != nil {
				return nil, err
			}
		}
	}
	elements := setElements(v)
	if len(elements) == 0 {
		return nil, invalid("One or more parameter values were invalid: An %s set  may not be empty", typeOf(v))
	}
	seen := make(map[string]bool, len(elements))
	for _, e := range elements {
		if seen[e] {
			return nil, invalid("One or more parameter values were invalid: Input collection contains duplicates.")
		}
		seen[e] = true
	}
	return v, nil
}

// clone copies a value so deeply that no caller can change the stored one.
func clone(v types.AttributeValue) types.AttributeValue {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return &types.AttributeValueMemberS{Value: v.Value}
	case *types.AttributeValueMemberN:
		return &types.AttributeValueMemberN{Value: v.Value}
	case *types.AttributeValueMemberB:
		return &types.AttributeValueMemberB{Value: append([]byte{}, v.Value...)}
	case *types.AttributeValueMemberBOOL:
		return &types.AttributeValueMemberBOOL{Value: v.Value}
	case *types.AttributeValueMemberNULL:
		return &types.AttributeValueMemberNULL{Value: v.Value}
	case *types.AttributeValueMemberL:
		list := make([]types.AttributeValue, len(v.Value))
		for i, e := range v.Value {
			list[i] = clone(e)
		}
		return &types.AttributeValueMemberL{Value: list}
	case *types.AttributeValueMemberM:
		return &types.AttributeValueMemberM{Value: cloneItem(v.Value)}
	case *types.AttributeValueMemberSS:
		return &types.AttributeValueMemberSS{Value: slices.Clone(v.Value)}
	case *types.AttributeValueMemberNS:
		return &types.AttributeValueMemberNS{Value: slices.Clone(v.Value)}
	case *types.AttributeValueMemberBS:
		set := make([][]byte, len(v.Value))
		for i, b := range v.Value {
			set[i] = append([]byte{}, b...)
		}
		return &types.AttributeValueMemberBS{Value: set}
	}
	return v
}

func cloneItem(it item) item {
	if it == nil {
		return nil
	}
	out := make(item, len(it))
	for name, v := range it {
		out[name] = clone(v)
	}
	return out
}

// setElements returns the elements of a set as strings.
func setElements(v types.AttributeValue) []string {
	switch v := v.(type) {
	case *types.AttributeValueMemberSS:
		return v.Value
	case *types.AttributeValueMemberNS:
		return v.Value
	case *types.AttributeValueMemberBS:
		out := make([]string, len(v.Value))
		for i, b := range v.Value {
			out[i] = string(b)
		}
		return out
	}
	return nil
}

// newSet makes a set of the same type as like, nil when it would be empty.
func newSet(like types.AttributeValue, elements []string) types.AttributeValue {
	if len(elements) == 0 {
		return nil
	}
	switch like.(type) {
	case *types.AttributeValueMemberSS:
		return &types.AttributeValueMemberSS{Value: elements}
	case *types.AttributeValueMemberNS:
		return &types.AttributeValueMemberNS{Value: elements}
	}
	set := make([][]byte, len(elements))
	for i, e := range elements {
		set[i] = []byte(e)
	}
	return &types.AttributeValueMemberBS{Value: set}
}

// equal reports whether two values are the same, as = does.
func equal(a, b types.AttributeValue) bool {
	if a == nil || b == nil || typeOf(a) != typeOf(b) {
		return false
	}
	switch a := a.(type) {
	case *types.AttributeValueMemberBOOL:
		y, ok := b.(*types.AttributeValueMemberBOOL)
		return ok && a.Value == y.Value
	case *types.AttributeValueMemberNULL:
		return true
	case *types.AttributeValueMemberL:
		y, ok := b.(*types.AttributeValueMemberL)
		return ok && slices.EqualFunc(a.Value, y.Value, equal)
	case *types.AttributeValueMemberM:
		y, ok := b.(*types.AttributeValueMemberM)
		return ok && maps.EqualFunc(a.Value, y.Value, equal)
	case *types.AttributeValueMemberSS, *types.AttributeValueMemberNS, *types.AttributeValueMemberBS:
		x, y := slices.Clone(setElements(a)), slices.Clone(setElements(b))
		slices.Sort(x)
		slices.Sort(y)
		return slices.Equal(x, y)
	}
	c, ok := compare(a, b)
	return ok && c == 0
}

// compare orders two values of one type that has an order: strings and binary by
// bytes, numbers by value.
func compare(a, b types.AttributeValue) (order int, ok bool) {
	switch a := a.(type) {
	case *types.AttributeValueMemberS:
		if b, ok := b.(*types.AttributeValueMemberS); ok {
			return cmp.Compare(a.Value, b.Value), true
		}
	case *types.AttributeValueMemberN:
		if b, ok := b.(*types.AttributeValueMemberN); ok {
			return compareNumbers(a.Value, b.Value), true
		}
	case *types.AttributeValueMemberB:
		if b, ok := b.(*types.AttributeValueMemberB); ok {
			return bytes.Compare(a.Value, b.Value), true
		}
	}
	return 0, false
}

// text returns the bytes of a string or a binary value.
func text(v types.AttributeValue) (string, bool) {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return v.Value, true
	case *types.AttributeValueMemberB:
		return string(v.Value), true
	}
	return "", false
}

// beginsWith reports whether v, a string or binary, begins with prefix.
func beginsWith(v, prefix types.AttributeValue) bool {
	s, okS := text(v)
	p, okP := text(prefix)
	return okS && okP && typeOf(v) == typeOf(prefix) && strings.HasPrefix(s, p)
}

// itemSize is the size of an item in bytes, names included, for capacity.
func itemSize(it item) int {
	size := 0
	for name, v := range it {
		size += len(name) + valueSize(v)
	}
	return size
}

func valueSize(v types.AttributeValue) int {
	const container, element = 3, 1
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return len(v.Value)
	case *types.AttributeValueMemberB:
		return len(v.Value)
	case *types.AttributeValueMemberN:
		return numberSize(v.Value)
	case *types.AttributeValueMemberL:
		size := container
		for _, e := range v.Value {
			size += element + valueSize(e)
		}
		return size
	case *types.AttributeValueMemberM:
		return container + len(v.Value)*element + itemSize(v.Value)
	case *types.AttributeValueMemberNS:
		size := 0
		for _, n := range v.Value {
			size += numberSize(n)
		}
		return size
	case *types.AttributeValueMemberSS, *types.AttributeValueMemberBS:
		size := 0
		for _, e := range setElements(v) {
			size += len(e)
		}
		return size
	}
	return 1
}

// project returns a copy of the named attributes of an item.
func project(it item, names []string) item {
	if names == nil || it == nil {
		return cloneItem(it)
	}
	out := make(item, len(names))
	for _, name := range names {
		if v, ok := it[name]; ok {
			out[name] = clone(v)
		}
	}
	return out
}
