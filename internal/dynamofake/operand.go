package dynamofake

import (
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// operand is a part of an expression that has a value.
type operand interface {
	// of is the value for an item, nil when there is none.
	of(it item) (types.AttributeValue, error)
}

// The operands. arithmetic, ifNotExists and listAppend stand in updates alone,
// sizeOf in conditions alone.
type (
	attribute   string
	literal     struct{ v types.AttributeValue }
	sizeOf      struct{ arg operand }
	ifNotExists struct {
		name attribute
		arg  operand
	}
	listAppend struct{ left, right operand }
	arithmetic struct {
		left, right operand
		minus       bool
	}
)

func (a attribute) of(it item) (types.AttributeValue, error) { return it[string(a)], nil }

func (l literal) of(item) (types.AttributeValue, error) { return l.v, nil }

func (s sizeOf) of(it item) (types.AttributeValue, error) {
	v, err := s.arg.of(it)
	if err != nil || v == nil {
		return nil, err
	}
	var n int
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		n = len(v.Value)
	case *types.AttributeValueMemberB:
		n = len(v.Value)
	case *types.AttributeValueMemberL:
		n = len(v.Value)
	case *types.AttributeValueMemberM:
		n = len(v.Value)
	case *types.AttributeValueMemberSS, *types.AttributeValueMemberNS, *types.AttributeValueMemberBS:
		n = len(setElements(v))
	default:
		return nil, nil
	}
	return &types.AttributeValueMemberN{Value: strconv.Itoa(n)}, nil
}

// of needs the default also where it is not used, as DynamoDB does.
func (o ifNotExists) of(it item) (types.AttributeValue, error) {
	otherwise, err := must(o.arg, it)
	if err != nil {
		return nil, err
	}
	if v := it[string(o.name)]; v != nil {
		return v, nil
	}
	return otherwise, nil
}

func (o listAppend) of(it item) (types.AttributeValue, error) {
	left, right, err := both(o.left, o.right, it)
	if err != nil {
		return nil, err
	}
	x, okX := left.(*types.AttributeValueMemberL)
	y, okY := right.(*types.AttributeValueMemberL)
	if !okX || !okY {
		return nil, wrongType()
	}
	return &types.AttributeValueMemberL{Value: append(append([]types.AttributeValue{}, x.Value...), y.Value...)}, nil
}

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

// operand reads an attribute, a value, or a function that one of allow names.
func (p *parser) operand(allow ...string) (operand, error) {
	t := p.peek()
	switch {
	case t.is("("):
		if err := p.open(); err != nil {
			return nil, err
		}
		o, err := p.operand(allow...)
		if err != nil {
			return nil, err
		}
		return o, p.expect(")")
	case t.kind == tokenValue:
		v, err := p.value()
		return literal{v}, err
	case t.kind == tokenWord && p.isCall():
		return p.function(allow)
	}
	name, err := p.attribute()
	return attribute(name), err
}

// isCall reports whether the next token is the name of a function.
func (p *parser) isCall() bool {
	return p.peek().kind == tokenWord && p.next+1 < len(p.tokens) && p.tokens[p.next+1].is("(")
}

// functions are all there are, with how many arguments each takes.
var functions = map[string]int{
	"attribute_exists": 1, "attribute_not_exists": 1, "attribute_type": 2,
	"begins_with": 2, "contains": 2, "size": 1, "if_not_exists": 2, "list_append": 2,
}

// call reads the name and the arguments of a function.
func (p *parser) call(allow []string) (name string, args []operand, err error) {
	p.operators++
	name = p.take().text
	arity, known := functions[name]
	if !known {
		return "", nil, p.fail("Invalid function name; function: %s", name)
	}
	if !slices.Contains(allow, name) {
		return "", nil, p.fail("The function is not allowed to be used this way; function: %s", name)
	}
	if err := p.expect("("); err != nil {
		return "", nil, err
	}
	for {
		arg, err := p.operand(nested[name]...)
		if err != nil {
			return "", nil, err
		}
		args = append(args, arg)
		if !p.accept(",") {
			break
		}
	}
	if err := p.expect(")"); err != nil {
		return "", nil, err
	}
	if len(args) != arity {
		return "", nil, p.fail("Incorrect number of operands for operator or function; operator or function: %s, number of operands: %d", name, len(args))
	}
	return name, args, nil
}

// nested are the functions that may stand as an argument of another.
var nested = map[string][]string{
	"if_not_exists": {"if_not_exists", "list_append"},
	"list_append":   {"if_not_exists", "list_append"},
	"contains":      {"size"},
}

// path demands that an argument is an attribute.
func (p *parser) path(function string, arg operand) (attribute, error) {
	a, ok := arg.(attribute)
	if !ok {
		return "", p.fail("Operator or function requires a document path; operator or function: %s", function)
	}
	return a, nil
}

// typed demands that an operand, if it is a literal, has one of the given types.
func (p *parser) typed(function string, o operand, allowed ...string) error {
	l, ok := o.(literal)
	if !ok {
		return nil
	}
	if slices.Contains(allowed, typeOf(l.v)) {
		return nil
	}
	return p.fail("Incorrect operand type for operator or function; operator or function: %s, operand type: %s", function, typeOf(l.v))
}

// function reads a function that has a value.
func (p *parser) function(allow []string) (operand, error) {
	name, args, err := p.call(allow)
	if err != nil {
		return nil, err
	}
	switch name {
	case "size":
		return sizeOf{args[0]}, p.typed(name, args[0], "S", "B", "L", "M", "SS", "NS", "BS")
	case "if_not_exists":
		a, err := p.path(name, args[0])
		if err != nil {
			return nil, err
		}
		return ifNotExists{a, args[1]}, p.distinct(name, args[0], args[1])
	case "list_append":
		for _, arg := range args {
			if err := p.typed(name, arg, "L"); err != nil {
				return nil, err
			}
		}
		return listAppend{args[0], args[1]}, nil
	}
	return nil, p.fail("The function is not allowed to be used this way; function: %s", name)
}
