package dynamofake

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Limits of an expression.
const (
	maxExpression = 4096 // bytes
	maxOperators  = 300
	maxIn         = 100 // operands of IN
)

// placeholders are the names and values that the expressions of one request share.
type placeholders struct {
	names  map[string]string
	values item
	used   map[string]bool
}

// newPlaceholders takes over the attribute names and values of a request. Neither
// may be given but empty, nor without an expression.
func newPlaceholders(names map[string]string, values item, expressions ...*string) (*placeholders, error) {
	some := false
	for _, e := range expressions {
		some = some || e != nil
	}
	for _, given := range []struct {
		what    string
		isGiven bool
		n       int
	}{{"ExpressionAttributeNames", names != nil, len(names)}, {"ExpressionAttributeValues", values != nil, len(values)}} {
		switch {
		case given.isGiven && !some:
			return nil, invalid("%s can only be specified when using expressions", given.what)
		case given.isGiven && given.n == 0:
			return nil, invalid("%s must not be empty", given.what)
		}
	}
	for key, name := range names {
		if name == "" {
			return nil, invalid("ExpressionAttributeNames contains invalid value: Empty attribute name for key %s", key)
		}
		if len(key) < 2 || key[0] != '#' || wordLen(key[1:]) != len(key)-1 {
			return nil, invalid("ExpressionAttributeNames contains invalid key: Syntax error; key: %q", key)
		}
	}
	for key := range values {
		if len(key) < 2 || key[0] != ':' || wordLen(key[1:]) != len(key)-1 {
			return nil, invalid("ExpressionAttributeValues contains invalid key: Syntax error; key: %q", key)
		}
	}
	admitted, err := admitItem(values)
	if err != nil {
		return nil, err
	}
	return &placeholders{names: names, values: admitted, used: map[string]bool{}}, nil
}

// done refuses placeholders that no expression used.
func (p *placeholders) done() error {
	for _, names := range []struct {
		what string
		keys []string
	}{{"ExpressionAttributeNames", unused(p.names, p.used)}, {"ExpressionAttributeValues", unused(p.values, p.used)}} {
		if len(names.keys) > 0 {
			return invalid("Value provided in %s unused in expressions: keys: {%s}", names.what, strings.Join(names.keys, ", "))
		}
	}
	return nil
}

func unused[V any](given map[string]V, used map[string]bool) []string {
	var keys []string
	for key := range given {
		if !used[key] {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// parser reads one expression. Its errors name the expression's parameter.
type parser struct {
	parameter string
	tokens    []token
	next      int
	operators int // and functions, read so far
	*placeholders
}

// newParser splits an expression; nil means that the request has none.
func (p *placeholders) newParser(parameter, expression string) (*parser, error) {
	if strings.TrimSpace(expression) == "" {
		return nil, invalid("Invalid %s: The expression can not be empty;", parameter)
	}
	if len(expression) > maxExpression {
		return nil, invalid("Invalid %s: Expression size has exceeded the maximum allowed size;", parameter)
	}
	tokens, bad := lex(expression)
	if bad != "" {
		return nil, invalid("Invalid %s: Syntax error; token: %q", parameter, bad)
	}
	return &parser{parameter: parameter, tokens: tokens, placeholders: p}, nil
}

func (p *parser) fail(format string, args ...any) error {
	return invalid("Invalid %s: %s", p.parameter, fmt.Sprintf(format, args...))
}

func (p *parser) peek() token {
	if p.next < len(p.tokens) {
		return p.tokens[p.next]
	}
	return token{}
}

func (p *parser) take() token {
	t := p.peek()
	p.next++
	return t
}

// accept takes the next token if it is text.
func (p *parser) accept(text string) bool {
	if p.peek().is(text) {
		p.next++
		return true
	}
	return false
}

func (p *parser) expect(text string) error {
	if t := p.take(); !t.is(text) {
		return p.syntax(t)
	}
	return nil
}

func (p *parser) syntax(t token) error { return p.fail("Syntax error; token: \"%v\"", t) }

func (p *parser) end() error {
	if t := p.peek(); t.kind != tokenEnd {
		return p.syntax(t)
	}
	if p.operators > maxOperators {
		return p.fail("The expression contains too many operators; operator count: %d", p.operators)
	}
	return nil
}

// open takes an opening bracket that does not only hold another.
func (p *parser) open() error {
	if err := p.expect("("); err != nil {
		return err
	}
	if inner := p.closes(p.next); p.peek().is("(") && inner >= 0 && inner == p.closes(p.next-1)-1 {
		return p.fail("The expression has redundant parentheses;")
	}
	return nil
}

// closes is the index of the bracket that closes the one at an index, -1 if none does.
func (p *parser) closes(open int) int {
	depth := 0
	for i := open; i < len(p.tokens); i++ {
		switch {
		case p.tokens[i].is("("):
			depth++
		case p.tokens[i].is(")"):
			depth--
		}
		if depth == 0 {
			return i
		}
	}
	return -1
}

// keywords cannot stand for an attribute.
var keywords = []string{"AND", "OR", "NOT", "BETWEEN", "IN", "SET", "REMOVE", "ADD", "DELETE"}

// attribute reads a placeholder of an attribute's name. Bare names and paths into
// documents are not supported: no attribute of the store's items is a document,
// and names always go through placeholders.
func (p *parser) attribute() (string, error) {
	t := p.take()
	_, isFunction := functions[t.text]
	switch {
	case t.kind == tokenName:
	case t.kind != tokenWord || isFunction || slices.ContainsFunc(keywords, t.is) || t.text[0] <= '9':
		return "", p.syntax(t)
	default:
		return "", unsupported("bare name %s in a %s; use a placeholder", t.text, p.parameter)
	}
	name, ok := p.names[t.text]
	if !ok {
		return "", p.fail("An expression attribute name used in the document path is not defined; attribute name: %s", t.text)
	}
	p.used[t.text] = true
	if next := p.peek(); next.is(".") || next.is("[") {
		return "", unsupported("path into the document %s in a %s", name, p.parameter)
	}
	return name, nil
}

// value reads a placeholder of a value.
func (p *parser) value() (types.AttributeValue, error) {
	t := p.take()
	if t.kind != tokenValue {
		return nil, p.syntax(t)
	}
	v, ok := p.values[t.text]
	if !ok {
		return nil, p.fail("An expression attribute value used in expression is not defined; attribute value: %s", t.text)
	}
	p.used[t.text] = true
	return v, nil
}

// projection reads a list of attributes; nil means all.
func (p *placeholders) projection(expression *string) ([]string, error) {
	if expression == nil {
		return nil, nil
	}
	ps, err := p.newParser("ProjectionExpression", *expression)
	if err != nil {
		return nil, err
	}
	var names []string
	for {
		name, err := ps.attribute()
		if err != nil {
			return nil, err
		}
		if slices.Contains(names, name) {
			return nil, ps.fail("Two document paths overlap with each other; must remove or rewrite one of these paths; path one: [%s], path two: [%[1]s]", name)
		}
		names = append(names, name)
		if !ps.accept(",") {
			return names, ps.end()
		}
	}
}

// project returns a copy of the named attributes of an item, of all when names is nil.
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
