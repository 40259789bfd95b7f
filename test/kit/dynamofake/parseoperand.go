package dynamofake

import (
	"slices"
)

// operand reads an attribute or a value.
func (p *parser) operand() (operand, error) {
	t := p.peek()
	switch {
	case t.is("("):
		if err := p.open(); err != nil {
			return nil, err
		}
		o, err := p.operand()
		if err != nil {
			return nil, err
		}
		return o, p.expect(")")
	case t.kind == tokenValue:
		v, err := p.value()
		return literal{v}, err
	case t.kind == tokenWord && p.isCall():
		name, _, err := p.call(nil)
		if err == nil {
			err = p.fail("The function is not allowed to be used this way; function: %s", name)
		}
		return nil, err
	}
	name, err := p.attribute()
	return attribute(name), err
}

// functions are those that the fake has, with how many arguments each takes.
var functions = map[string]int{
	"attribute_exists": 1, "attribute_not_exists": 1, "begins_with": 2,
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
		arg, err := p.operand()
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
