package yamlcfg

import (
	"encoding/json"
	"net"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// Text is any text, which may be "".
func Text(out *string) Schema {
	return Scalar{Of: Shape{Type: []string{"string"}, Default: given(*out)}, Read: func(d *Decoder, v Value) {
		if v.node.Kind != yaml.ScalarNode || v.node.Tag != "!!str" {
			d.Failf(v, "must be text, not %s%s", d.Describe(v), d.quoted(v.node))
			return
		}
		*out = v.node.Value
	}}
}

// quoted returns a hint how to write a number or a similar value as text.
func (d *Decoder) quoted(n *yaml.Node) string {
	if n.Kind != yaml.ScalarNode || isNull(n) || d.hidden[n] {
		return ""
	}
	return ": write " + strconv.Quote(n.Value)
}

// Name is text that is not empty.
func Name(out *string) Schema {
	return Scalar{Of: Shape{Type: []string{"string"}, Pattern: ".", Default: given(*out)}, Read: func(d *Decoder, v Value) {
		var s string
		Text(&s).Decode(d, v)
		if s == "" && v.node.Tag == "!!str" {
			d.Failf(v, "must not be empty")
			return
		}
		*out = s
	}}
}

// Literal is a scalar as it is written. Values of descriptors are text: 404 or true in a file mean
// that text.
func Literal(out *string) Schema {
	return Scalar{Of: Shape{Type: []string{"string", "number", "boolean"}}, Read: func(d *Decoder, v Value) {
		if v.node.Kind != yaml.ScalarNode || isNull(v.node) {
			d.Failf(v, "must be text, not %s", d.Describe(v))
			return
		}
		*out = v.node.Value
	}}
}

// Names is one name or a list of them.
func Names(out *[]string) Schema {
	return Scalar{Of: Shape{AnyOf: []*Shape{{Type: []string{"string"}, Pattern: "."}, {Type: []string{"array"}, Items: &Shape{Type: []string{"string"}, Pattern: "."}}}}, Read: func(d *Decoder, v Value) {
		if v.node.Kind == yaml.SequenceNode {
			List[string]{Out: out, Item: Name}.Decode(d, v)
			return
		}
		var s string
		Name(&s).Decode(d, v)
		if s != "" {
			*out = []string{s}
		}
	}}
}

// Bool is true or false.
func Bool(out *bool) Schema {
	return Scalar{Of: Shape{Type: []string{"boolean"}, Default: *out}, Read: func(d *Decoder, v Value) {
		if v.node.Kind != yaml.ScalarNode || v.node.Tag != "!!bool" {
			d.Failf(v, "must be true or false, not %s", d.Describe(v))
			return
		}
		*out = strings.EqualFold(v.node.Value, "true")
	}}
}

// OneOf is one of some words, each with the value that it stands for. The first word is the
// default.
func OneOf[T comparable](out *T, words ...Word[T]) Schema {
	known, shape := make([]string, len(words)), Shape{}
	for i, w := range words {
		known[i], shape.Enum = w.Text, append(shape.Enum, w.Text)
		if w.Value == *out {
			shape.Default = w.Text
		}
	}
	return Scalar{Of: shape, Read: func(d *Decoder, v Value) {
		for _, w := range words {
			if v.node.Kind == yaml.ScalarNode && v.node.Value == w.Text {
				*out = w.Value
				return
			}
		}
		hint := ""
		if v.node.Kind == yaml.ScalarNode {
			hint = DidYouMean(v.node.Value, known)
		}
		d.Failf(v, "must be %s, not %s%s", alternatives(known), d.Describe(v), hint)
	}}
}

// Word is a word of a file and the value that it stands for.
type Word[T any] struct {
	Text  string
	Value T
}

// alternatives returns "a, b or c".
func alternatives(words []string) string {
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// Integer is a whole number within bounds.
func Integer(out *int64, least, most int64) Schema {
	shape := numbers("integer", strconv.FormatInt(least, 10), strconv.FormatInt(most, 10))
	if n := *out; n > 0 && n >= least && n <= most {
		shape.Default = n
	}
	return Scalar{Of: shape, Read: func(d *Decoder, v Value) {
		n, ok := int64(0), v.node.Kind == yaml.ScalarNode && v.node.Tag == "!!int"
		if ok {
			n, ok = ParseInteger(v.node.Value)
		}
		if !ok || n < least || n > most {
			d.Failf(v, "must be a whole number, %d to %d, not %s", least, most, d.Describe(v))
			return
		}
		*out = n
	}}
}

// Count is a whole number within bounds, as an int.
func Count(out *int, least, most int64) Schema {
	shape := numbers("integer", strconv.FormatInt(least, 10), strconv.FormatInt(most, 10))
	if n := int64(*out); n > 0 && n >= least && n <= most {
		shape.Default = n
	}
	return Scalar{Of: shape, Read: func(d *Decoder, v Value) {
		n := int64(*out)
		Integer(&n, least, most).Decode(d, v)
		*out = int(n)
	}}
}

// Thousandths is a number with at most three decimals, times 1000.
func Thousandths(out *int64, least, most int64) Schema {
	return Scalar{Of: numbers("number", Decimal(least), Decimal(most)), Read: func(d *Decoder, v Value) {
		n, ok := int64(0), v.node.Kind == yaml.ScalarNode && (v.node.Tag == "!!int" || v.node.Tag == "!!float")
		if ok {
			n, ok = parseThousandths(v.node.Value)
		}
		if !ok || n < least || n > most {
			d.Failf(v, "must be a number, %s to %s with at most three decimals, not %s", Decimal(least), Decimal(most), d.Describe(v))
			return
		}
		*out = n
	}}
}

// Duration is a duration in the form of Go.
func Duration(out *time.Duration, least, most time.Duration) Schema {
	shape := Shape{Type: []string{"string"}, Pattern: `^([0-9.]+(ns|us|µs|ms|s|m|h))+$|^0$`}
	if *out >= least && *out <= most && *out > 0 {
		shape.Default = ShortDuration(*out)
	}
	return Scalar{Of: shape, Read: func(d *Decoder, v Value) {
		if v.node.Kind != yaml.ScalarNode || v.node.Tag != "!!str" {
			hint := ""
			if v.node.Tag == "!!int" && !d.hidden[v.node] {
				hint = ": write a unit, such as " + v.node.Value + unitFor(v.node.Value, least, most)
			}
			d.Failf(v, "must be a duration, such as 15ms or 1h30m, not %s%s", d.Describe(v), hint)
			return
		}
		x, err := time.ParseDuration(v.node.Value)
		switch {
		case err != nil:
			d.Failf(v, "must be a duration, such as 15ms or 1h30m, not %s; the units are ms, s, m and h", d.Describe(v))
		case x < least || x > most:
			d.Failf(v, "must be %s to %s, not %s", ShortDuration(least), ShortDuration(most), ShortDuration(x))
		default:
			*out = x
		}
	}}
}

// unitFor returns the unit with which a number is within bounds; seconds when none is.
func unitFor(number string, least, most time.Duration) string {
	for _, unit := range []string{"s", "ms", "m", "h"} {
		if x, err := time.ParseDuration(number + unit); err == nil && x >= least && x <= most {
			return unit
		}
	}
	return "s"
}

// ShortDuration is a duration without parts that are zero: 1h, not 1h0m0s.
func ShortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}

// Address is a host and a port, "0.0.0.0:8081". Without a host it is all interfaces.
func Address(out *string) Schema {
	return Scalar{Of: Shape{Type: []string{"string"}, Pattern: ":[0-9]+$", Default: given(*out)}, Read: func(d *Decoder, v Value) {
		_, port, err := net.SplitHostPort(v.node.Value)
		if err == nil {
			_, err = strconv.ParseUint(port, 10, 16)
		}
		if err != nil || v.node.Kind != yaml.ScalarNode {
			d.Failf(v, "must be a host and a port from 0 to 65535, such as 127.0.0.1:8080 or [::1]:8080, not %s", d.Describe(v))
			return
		}
		*out = v.node.Value
	}}
}

// numbers describes numbers within bounds. Editors take a number with '_' for text.
func numbers(kind, least, most string) Shape {
	return Shape{Type: []string{kind, "string"}, Pattern: `^[0-9][0-9_]*(\.[0-9]+)?$`, Minimum: json.Number(least), Maximum: json.Number(most)}
}

// given is text as a default; nil for none.
func given(text string) any {
	if text == "" {
		return nil
	}
	return text
}
