package dynamofake

import (
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// condition is a condition, a filter or a key condition, ready to be asked.
type condition interface {
	holds(it item) (bool, error)
}

// The conditions.
type (
	always     struct{}
	and        struct{ left, right condition }
	or         struct{ left, right condition }
	not        struct{ of condition }
	comparison struct {
		operator    string
		left, right operand
	}
	between struct{ value, low, high operand }
	in      struct {
		value operand
		list  []operand
	}
	exists struct {
		name attribute
		want bool
	}
	hasType struct {
		value operand
		want  string
	}
	begins   struct{ value, prefix operand }
	contains struct{ value, part operand }
)

func (always) holds(item) (bool, error) { return true, nil }

func (c and) holds(it item) (bool, error) {
	if ok, err := c.left.holds(it); err != nil || !ok {
		return false, err
	}
	return c.right.holds(it)
}

func (c or) holds(it item) (bool, error) {
	if ok, err := c.left.holds(it); err != nil || ok {
		return ok, err
	}
	return c.right.holds(it)
}

func (c not) holds(it item) (bool, error) {
	ok, err := c.of.holds(it)
	return !ok, err
}

// holds is false for a missing operand, save that a missing one is unequal to all.
func (c comparison) holds(it item) (bool, error) {
	left, err := c.left.of(it)
	if err != nil {
		return false, err
	}
	right, err := c.right.of(it)
	if err != nil {
		return false, err
	}
	switch c.operator {
	case "=":
		return equal(left, right), nil
	case "<>":
		return !equal(left, right), nil
	}
	order, ok := compare(left, right)
	switch c.operator {
	case "<":
		ok = ok && order < 0
	case "<=":
		ok = ok && order <= 0
	case ">":
		ok = ok && order > 0
	case ">=":
		ok = ok && order >= 0
	}
	return ok, nil
}

func (c between) holds(it item) (bool, error) {
	low := comparison{"<=", c.low, c.value}
	return and{low, comparison{"<=", c.value, c.high}}.holds(it)
}

func (c in) holds(it item) (bool, error) {
	for _, o := range c.list {
		if ok, err := (comparison{"=", c.value, o}).holds(it); err != nil || ok {
			return ok, err
		}
	}
	return false, nil
}

func (c exists) holds(it item) (bool, error) { return (it[string(c.name)] != nil) == c.want, nil }

func (c hasType) holds(it item) (bool, error) {
	v, err := c.value.of(it)
	return typeOf(v) == c.want, err
}

func (c begins) holds(it item) (bool, error) {
	v, err := c.value.of(it)
	if err != nil {
		return false, err
	}
	prefix, err := c.prefix.of(it)
	return beginsWith(v, prefix), err
}

func (c contains) holds(it item) (bool, error) {
	v, err := c.value.of(it)
	if err != nil {
		return false, err
	}
	part, err := c.part.of(it)
	if err != nil || v == nil || part == nil {
		return false, err
	}
	switch v := v.(type) {
	case *types.AttributeValueMemberL:
		return slices.ContainsFunc(v.Value, func(e types.AttributeValue) bool { return equal(e, part) }), nil
	case *types.AttributeValueMemberSS, *types.AttributeValueMemberNS, *types.AttributeValueMemberBS:
		return typeOf(v) == typeOf(part)+"S" && slices.Contains(setElements(v), scalar(part)), nil
	}
	whole, ok := text(v)
	sub, isText := text(part)
	return ok && isText && typeOf(v) == typeOf(part) && strings.Contains(whole, sub), nil
}

// scalar is the form in which setElements gives a value.
func scalar(v types.AttributeValue) string {
	if n, ok := v.(*types.AttributeValueMemberN); ok {
		return n.Value
	}
	s, _ := text(v) // no text is no element
	return s
}

// condition reads a condition; a request without one always holds.
func (p *placeholders) condition(parameter string, expression *string) (condition, error) {
	if expression == nil {
		return always{}, nil
	}
	ps, err := p.newParser(parameter, *expression)
	if err != nil {
		return nil, err
	}
	c, err := ps.or()
	if err != nil {
		return nil, err
	}
	return c, ps.end()
}

func (p *parser) or() (condition, error) {
	left, err := p.and()
	for err == nil && p.accept("OR") {
		p.operators++
		var right condition
		right, err = p.and()
		left = or{left, right}
	}
	return left, err
}

func (p *parser) and() (condition, error) {
	left, err := p.not()
	for err == nil && p.accept("AND") {
		p.operators++
		var right condition
		right, err = p.not()
		left = and{left, right}
	}
	return left, err
}

func (p *parser) not() (condition, error) {
	if p.accept("NOT") {
		p.operators++
		c, err := p.not()
		return not{c}, err
	}
	if !p.peek().is("(") || p.isOperand() {
		return p.test()
	}
	if err := p.open(); err != nil {
		return nil, err
	}
	c, err := p.or()
	if err != nil {
		return nil, err
	}
	return c, p.expect(")")
}

// isOperand reports whether the bracket that comes next holds an operand.
func (p *parser) isOperand() bool {
	end := p.closes(p.next)
	if end < 0 || end+1 >= len(p.tokens) {
		return false
	}
	after := p.tokens[end+1]
	return slices.ContainsFunc([]string{"=", "<>", "<", "<=", ">", ">=", "BETWEEN", "IN"}, after.is)
}

// test reads a comparison or a function that holds or not.
func (p *parser) test() (condition, error) {
	if p.isCall() && p.peek().text != "size" {
		return p.predicate()
	}
	left, err := p.operand("size")
	if err != nil {
		return nil, err
	}
	p.operators++
	switch t := p.take(); {
	case t.is("BETWEEN"):
		return p.between(left)
	case t.is("IN"):
		return p.in(left)
	case t.is("="), t.is("<>"), t.is("<"), t.is("<="), t.is(">"), t.is(">="):
		right, err := p.operand("size")
		if err != nil {
			return nil, err
		}
		if err := p.distinct(t.text, left, right); err != nil {
			return nil, err
		}
		return comparison{t.text, left, right}, p.comparable(t.text, left, right)
	default:
		return nil, p.syntax(t)
	}
}

// distinct refuses an attribute that is held against itself.
func (p *parser) distinct(operator string, first operand, others ...operand) error {
	if a, ok := first.(attribute); ok && slices.Contains(others, first) {
		return p.fail("The first operand must be distinct from the remaining operands for this operator or function; operator: %s, first operand: [%s]", operator, a)
	}
	return nil
}

// comparable refuses operands that the operator cannot have.
func (p *parser) comparable(operator string, left, right operand) error {
	if operator == "=" || operator == "<>" {
		return nil
	}
	if err := p.typed(operator, left, "S", "N", "B"); err != nil {
		return err
	}
	return p.typed(operator, right, "S", "N", "B")
}

func (p *parser) between(value operand) (condition, error) {
	low, err := p.operand("size")
	if err != nil {
		return nil, err
	}
	if err := p.expect("AND"); err != nil {
		return nil, err
	}
	high, err := p.operand("size")
	if err != nil {
		return nil, err
	}
	for _, o := range []operand{value, low, high} {
		if err := p.typed("BETWEEN", o, "S", "N", "B"); err != nil {
			return nil, err
		}
	}
	if err := p.distinct("BETWEEN", value, low, high); err != nil {
		return nil, err
	}
	x, okX := low.(literal)
	y, okY := high.(literal)
	if okX && okY {
		order, ok := compare(x.v, y.v)
		switch {
		case !ok:
			return nil, p.fail("The BETWEEN operator requires same data type for lower and upper bounds; lower bound operand: AttributeValue: {%s}, upper bound operand: AttributeValue: {%s}", typeOf(x.v), typeOf(y.v))
		case order > 0:
			return nil, p.fail("The BETWEEN operator requires upper bound to be greater than or equal to lower bound;")
		}
	}
	return between{value, low, high}, nil
}

func (p *parser) in(value operand) (condition, error) {
	if err := p.expect("("); err != nil {
		return nil, err
	}
	c := in{value: value}
	for {
		o, err := p.operand("size")
		if err != nil {
			return nil, err
		}
		c.list = append(c.list, o)
		if len(c.list) > maxIn {
			return nil, p.fail("The IN operator is provided with too many operands;")
		}
		if !p.accept(",") {
			break
		}
	}
	if err := p.distinct("IN", value, c.list...); err != nil {
		return nil, err
	}
	return c, p.expect(")")
}

// predicate reads a function that holds or not.
func (p *parser) predicate() (condition, error) {
	name, args, err := p.call([]string{"attribute_exists", "attribute_not_exists", "attribute_type", "begins_with", "contains"})
	if err != nil {
		return nil, err
	}
	switch name {
	case "attribute_exists", "attribute_not_exists":
		a, err := p.path(name, args[0])
		return exists{a, name == "attribute_exists"}, err
	case "attribute_type":
		return p.attributeType(args)
	case "begins_with":
		for _, arg := range args {
			if err := p.typed(name, arg, "S", "B"); err != nil {
				return nil, err
			}
		}
		return begins{args[0], args[1]}, p.distinct(name, args[0], args[1])
	}
	return contains{args[0], args[1]}, p.distinct(name, args[0], args[1])
}

func (p *parser) attributeType(args []operand) (condition, error) {
	l, ok := args[1].(literal)
	if !ok {
		return nil, p.fail("Incorrect operand type for operator or function; operator or function: attribute_type")
	}
	s, ok := l.v.(*types.AttributeValueMemberS)
	if !ok {
		return nil, p.fail("Incorrect operand type for operator or function; operator or function: attribute_type, operand type: %s", typeOf(l.v))
	}
	if !slices.Contains([]string{"S", "N", "B", "BOOL", "NULL", "L", "M", "SS", "NS", "BS"}, s.Value) {
		return nil, p.fail("Invalid attribute type name found; type: %s", s.Value)
	}
	return hasType{args[0], s.Value}, nil
}
