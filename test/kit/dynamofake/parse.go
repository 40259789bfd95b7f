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
)

// parser reads one expression. Its errors name the expression's parameter.
type parser struct {
	parameter string
	operators int // and functions, read so far
	stream
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
	for _, t := range tokens {
		if t.kind == tokenWord && slices.ContainsFunc(missing, func(word string) bool { return strings.EqualFold(word, t.text) }) {
			return nil, unsupported("%s in a %s", t.text, parameter)
		}
	}
	return &parser{parameter: parameter, stream: stream{tokens: tokens}, placeholders: p}, nil
}

func (p *parser) fail(format string, args ...any) error {
	return invalid("Invalid %s: %s", p.parameter, fmt.Sprintf(format, args...))
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

// keywords cannot stand for an attribute.
var keywords = []string{"AND", "OR", "BETWEEN", "SET", "REMOVE", "ADD"}

// missing are the keywords and functions of DynamoDB that the fake does not have,
// because no expression of the program uses them.
var missing = []string{"NOT", "IN", "DELETE", "attribute_type", "contains", "size", "if_not_exists", "list_append"}

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
