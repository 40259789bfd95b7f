package dynamofake

import (
	"slices"
)

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
	left, err := p.factor()
	for err == nil && p.accept("AND") {
		p.operators++
		var right condition
		right, err = p.factor()
		left = and{left, right}
	}
	return left, err
}

// factor reads a test, or a condition in brackets.
func (p *parser) factor() (condition, error) {
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

// test reads a comparison or a function that holds or not.
func (p *parser) test() (condition, error) {
	if p.isCall() {
		return p.predicate()
	}
	left, err := p.operand()
	if err != nil {
		return nil, err
	}
	p.operators++
	switch t := p.take(); {
	case t.is("BETWEEN"):
		return p.between(left)
	case t.is("="), t.is("<>"), t.is("<"), t.is("<="), t.is(">"), t.is(">="):
		right, err := p.operand()
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
	low, err := p.operand()
	if err != nil {
		return nil, err
	}
	if err := p.expect("AND"); err != nil {
		return nil, err
	}
	high, err := p.operand()
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

// predicate reads a function that holds or not.
func (p *parser) predicate() (condition, error) {
	name, args, err := p.call([]string{"attribute_exists", "attribute_not_exists", "begins_with"})
	if err != nil {
		return nil, err
	}
	switch name {
	case "attribute_exists", "attribute_not_exists":
		a, err := p.path(name, args[0])
		return exists{a, name == "attribute_exists"}, err
	}
	for _, arg := range args {
		if err := p.typed(name, arg, "S", "B"); err != nil {
			return nil, err
		}
	}
	return begins{args[0], args[1]}, p.distinct(name, args[0], args[1])
}
