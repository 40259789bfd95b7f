package dynamofake

import (
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// action is one change of one attribute.
type action struct {
	section string // SET, REMOVE, ADD, DELETE
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
		switch a.section {
		case "ADD":
			v, err = added(old[a.name], v)
		case "DELETE":
			v, err = deleted(old[a.name], v)
		}
		if err != nil {
			return nil, err
		}
		if v == nil {
			delete(out, a.name)
		} else {
			out[a.name] = v
		}
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

// deleted is the result of DELETE on a set: nil when no element is left.
func deleted(old, v types.AttributeValue) (types.AttributeValue, error) {
	if old == nil {
		return nil, nil
	}
	if typeOf(old) != typeOf(v) {
		return nil, wrongType()
	}
	gone := setElements(v)
	left := slices.DeleteFunc(slices.Clone(setElements(old)), func(e string) bool { return slices.Contains(gone, e) })
	return newSet(old, left), nil
}

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
		case t.kind != tokenWord || !slices.Contains([]string{"SET", "REMOVE", "ADD", "DELETE"}, section):
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
		case "DELETE":
			a.value, err = p.literalOf(section, "SS", "NS", "BS")
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
	functions := []string{"if_not_exists", "list_append"}
	left, err := p.operand(functions...)
	if err != nil {
		return nil, err
	}
	sign := p.peek()
	if !sign.is("+") && !sign.is("-") {
		return left, nil
	}
	p.take()
	p.operators++
	right, err := p.operand(functions...)
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

// isArithmetic reports whether the bracket that comes next holds a whole sum.
func (p *parser) isArithmetic() bool {
	end := p.closes(p.next)
	if end < 0 || end+1 < len(p.tokens) && (p.tokens[end+1].is("+") || p.tokens[end+1].is("-")) {
		return false
	}
	return slices.ContainsFunc(p.tokens[p.next:end], func(t token) bool { return t.is("+") || t.is("-") })
}
