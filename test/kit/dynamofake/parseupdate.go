package dynamofake

import (
	"slices"
	"strings"
)

// update reads an update expression; a request without one changes nothing.
func (p *placeholders) update(expression *string) (update, error) {
	if expression == nil {
		return nil, nil
	}
	ps, err := p.newParser("UpdateExpression", *expression)
	if err != nil {
		return nil, err
	}
	var u update
	seen := map[string]bool{}
	for ps.peek().kind != tokenEnd {
		t := ps.take()
		section := strings.ToUpper(t.text)
		switch {
		case t.kind != tokenWord || !slices.Contains([]string{"SET", "REMOVE", "ADD"}, section):
			return nil, ps.syntax(t)
		case seen[section]:
			return nil, ps.fail("The %q section can only be used once in an update expression;", section)
		}
		seen[section] = true
		if u, err = ps.section(u, section); err != nil {
			return nil, err
		}
	}
	if err := ps.end(); err != nil {
		return nil, err
	}
	return u, ps.overlap(u)
}

// overlap refuses two changes of one attribute.
func (p *parser) overlap(u update) error {
	names := u.names()
	slices.Sort(names)
	for i := 1; i < len(names); i++ {
		if names[i] == names[i-1] {
			return p.fail("Two document paths overlap with each other; must remove or rewrite one of these paths; path one: [%s], path two: [%[1]s]", names[i])
		}
	}
	return nil
}

func (p *parser) section(u update, section string) (update, error) {
	for {
		a := action{section: section}
		var err error
		if a.name, err = p.attribute(); err != nil {
			return nil, err
		}
		switch section {
		case "SET":
			if err := p.expect("="); err != nil {
				return nil, err
			}
			a.value, err = p.assigned()
		case "ADD":
			a.value, err = p.literalOf(section, "N", "SS", "NS", "BS")
		}
		if err != nil {
			return nil, err
		}
		u = append(u, a)
		if !p.accept(",") {
			return u, nil
		}
	}
}

func (p *parser) literalOf(section string, allowed ...string) (operand, error) {
	v, err := p.value()
	if err != nil {
		return nil, err
	}
	l := literal{v}
	return l, p.typed(section, l, allowed...)
}

// assigned reads the right side of SET: an operand, or two with + or - between them.
func (p *parser) assigned() (operand, error) {
	if p.peek().is("(") && p.isArithmetic() {
		if err := p.open(); err != nil {
			return nil, err
		}
		o, err := p.assigned()
		if err != nil {
			return nil, err
		}
		return o, p.expect(")")
	}
	left, err := p.operand()
	if err != nil {
		return nil, err
	}
	sign := p.peek()
	if !sign.is("+") && !sign.is("-") {
		return left, nil
	}
	p.take()
	p.operators++
	right, err := p.operand()
	if err != nil {
		return nil, err
	}
	for _, o := range []operand{left, right} {
		if err := p.typed(sign.text, o, "N"); err != nil {
			return nil, err
		}
	}
	return arithmetic{left, right, sign.is("-")}, nil
}
