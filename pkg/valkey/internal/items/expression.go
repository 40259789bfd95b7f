package items

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// compiler turns expressions of DynamoDB into words of items.lua. It knows the forms that packages
// schema and plan write, and refuses others:
//
//	conditions  comparisons of an attribute and a value, attribute_exists, attribute_not_exists, AND, OR, brackets
//	updates     SET a = value, SET a = value - b, ADD, REMOVE
//
// A condition becomes prefix notation: an operator, then its operands. The condition 1 always holds.
type compiler struct {
	names  map[string]string
	values map[string]types.AttributeValue
	rest   []string // of the expression
	words  []string // of the condition
	read   []string // attributes that were named
	err    error
	meter  meter
}

// reads notes attributes that have to be read.
func (c *compiler) reads(attrs ...string) {
	for _, attr := range attrs {
		if !slices.Contains(c.read, attr) {
			c.read = append(c.read, attr)
		}
	}
}

// split cuts an expression into words.
func split(s string) []string {
	out := make([]string, 0, len(s)/2) // at least a space or a sign between two of them
	for i := 0; i < len(s); {
		j := i + 1
		switch c := s[i]; {
		case c == ' ':
			i++
			continue
		case strings.IndexByte("(),=-", c) >= 0:
		case c == '<' || c == '>':
			if j < len(s) && (s[j] == '=' || s[j] == '>') {
				j++
			}
		default:
			for j < len(s) && strings.IndexByte(" (),=<>-", s[j]) < 0 {
				j++
			}
		}
		out = append(out, s[i:j])
		i = j
	}
	return out
}

func (c *compiler) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("an expression has "+format, args...)
	}
}

func (c *compiler) peek() string {
	if len(c.rest) == 0 {
		return ""
	}
	return c.rest[0]
}

func (c *compiler) next() string {
	w := c.peek()
	if len(c.rest) > 0 {
		c.rest = c.rest[1:]
	}
	return w
}

func (c *compiler) want(w string) {
	if got := c.next(); got != w {
		c.fail("%q in the place of %q", got, w)
	}
}

// name returns the next attribute, which is read.
func (c *compiler) name() string {
	n := c.attribute()
	c.reads(n)
	return n
}

// attribute returns the next attribute.
func (c *compiler) attribute() string {
	w := c.next()
	n, ok := c.names[w]
	if !ok {
		c.fail("the name %q, which stands for nothing", w)
	}
	return n
}

func (c *compiler) value() string {
	w := c.next()
	v, ok := c.values[w]
	if !ok {
		c.fail("the value %q, which stands for nothing", w)
		return ""
	}
	s, err := encode(v)
	if err != nil {
		c.fail("the value %q: %w", w, err)
	}
	return s
}

// always returns the words of the condition that always holds.
func always() []string { return []string{"1"} }

// condition returns the words of a condition; nil always holds.
func (c *compiler) condition(s *string) []string {
	if s == nil {
		return always()
	}
	c.rest = split(*s)
	c.words = make([]string, 0, len(c.rest)+1)
	c.either()
	if len(c.rest) > 0 {
		c.fail("%q behind its end", c.rest)
	}
	return c.words
}

func (c *compiler) either() { c.chain("OR", "|", c.both) }
func (c *compiler) both()   { c.chain("AND", "&", c.one) }

// chain compiles parts with a word between them. Several have their operator before them.
func (c *compiler) chain(word, op string, part func()) {
	n, first := 1, len(c.words)
	for part(); c.peek() == word; part() {
		c.next()
		n++
	}
	if n > 1 {
		c.words = slices.Insert(c.words, first, op, strconv.Itoa(n))
	}
}

// one compiles a comparison, a function, or a condition in brackets.
func (c *compiler) one() {
	switch w := c.peek(); w {
	case "(":
		c.next()
		c.either()
		c.want(")")
		return
	case "attribute_not_exists", "attribute_exists":
		c.next()
		c.want("(")
		op := "!"
		if w == "attribute_exists" {
			op = "E"
		}
		c.words = append(c.words, op, c.name())
		c.want(")")
		return
	}
	n, op := c.name(), c.next()
	if !isComparison(op) {
		c.fail("the operator %q", op)
	}
	c.words = append(c.words, op, n, c.value())
}

// isComparison reports whether an operator compares an attribute with a value.
func isComparison(op string) bool {
	switch op {
	case "=", "<>", "<", "<=", ">", ">=":
		return true
	}
	return false
}

// update returns the actions of an update.
func (c *compiler) update(s *string) (all actions) {
	if s == nil {
		return all
	}
	c.rest = split(*s)
	for len(c.rest) > 0 && c.err == nil {
		section := c.next()
		for {
			c.action(section, &all)
			if c.peek() != "," {
				break
			}
			c.next()
		}
	}
	return all
}

// action appends an action to those before it.
func (c *compiler) action(section string, to *actions) {
	name := c.attribute()
	if section == "ADD" {
		if v := c.value(); !c.meter.counts(name, v) {
			c.reads(name)
			to.added = append(to.added, name, v)
		}
		return
	}
	c.reads(name)
	switch section {
	case "SET":
		c.want("=")
		v := c.value()
		c.meter.set(name, v)
		if c.peek() != "-" {
			to.set = append(to.set, name, v)
			return
		}
		c.next()
		to.lessened, to.by = append(to.lessened, name, v), append(to.by, c.name())
	case "REMOVE":
		to.removed = append(to.removed, name)
	default:
		c.fail("the section %q", section)
	}
}
