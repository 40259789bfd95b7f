package yamlcfg

import (
	"encoding/json"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/ratelimit/ratelimit/pkg/money"
)

// Text is any text, which may be "".
func Text(out *string) Schema {
	return Scalar{Of: Shape{Type: []string{"string"}, Default: given(*out)}, Read: func(n Node) {
		if n.Is("!!str") {
			*out = n.Raw()
			return
		}
		hint := ""
		switch {
		case n.hidden[n.yaml]:
		case n.IsScalar():
			hint = ": write " + strconv.Quote(n.Raw())
		case isPlaceholder(n.yaml):
			hint = ": write " + strconv.Quote("{"+n.yaml.Content[0].Value+"}")
		}
		n.Failf("must be text, not %s%s", n.Describe(), hint)
	}}
}

// Name is text that is not empty.
func Name(out *string) Schema {
	return Scalar{Of: Shape{Type: []string{"string"}, Pattern: ".", Default: given(*out)}, Read: func(n Node) {
		if n.Is("!!str") && n.Raw() == "" {
			n.Failf("must not be empty")
			return
		}
		Text(out).Decode(n)
	}}
}

// given is text as a default; nil for none.
func given(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// Literal is a scalar as it is written. Values of descriptors are text: 404 or true in a file mean
// that text.
func Literal(out *string) Schema {
	return Scalar{Of: Shape{Type: []string{"string", "number", "boolean"}}, Read: func(n Node) {
		if !n.IsScalar() {
			n.Failf("must be text, not %s", n.Describe())
			return
		}
		*out = n.Raw()
	}}
}

// Names is one name or a list of them.
func Names(out *[]string) Schema {
	list := List[string]{Out: out, Item: Name}
	name := Name(new(string)).Shape()
	return Scalar{Of: Shape{AnyOf: []*Shape{name, {Type: []string{"array"}, Items: name}}}, Read: func(n Node) {
		if n.IsList() {
			list.Decode(n)
			return
		}
		var s string
		Name(&s).Decode(n)
		if s != "" {
			*out = []string{s}
		}
	}}
}

// Bool is true or false.
func Bool(out *bool) Schema {
	return Scalar{Of: Shape{Type: []string{"boolean"}, Default: *out}, Read: func(n Node) {
		if !n.Is("!!bool") {
			n.Failf("must be true or false, not %s", n.Describe())
			return
		}
		*out = strings.EqualFold(n.Raw(), "true")
	}}
}

// Word is a word of a file and the value that it stands for.
type Word[T any] struct {
	Text  string
	Value T
}

// As returns the word for a value.
func As[T any](text string, value T) Word[T] { return Word[T]{text, value} }

// Enum is one of some texts.
func Enum[T ~string](out *T, texts ...T) Schema {
	words := make([]Word[T], len(texts))
	for i, text := range texts {
		words[i] = Word[T]{string(text), text}
	}
	return OneOf(out, words...)
}

// OneOf is one of some words, each with the value that it stands for.
func OneOf[T comparable](out *T, words ...Word[T]) Schema {
	known, shape := make([]string, len(words)), Shape{}
	for i, w := range words {
		known[i], shape.Enum = w.Text, append(shape.Enum, w.Text)
		if w.Value == *out {
			shape.Default = w.Text
		}
	}
	return Scalar{Of: shape, Read: func(n Node) {
		for _, w := range words {
			if n.IsScalar() && n.Raw() == w.Text {
				*out = w.Value
				return
			}
		}
		all := known[0]
		if last := len(known) - 1; last > 0 {
			all = strings.Join(known[:last], ", ") + " or " + known[last]
		}
		n.Failf("must be %s, not %s%s", all, n.Describe(), DidYouMean(n.Raw(), known))
	}}
}

// Integer is a whole number within bounds.
func Integer[T int | int64](out *T, least, most int64) Schema {
	shape := numbers("integer", least*1000, most*1000)
	if n := int64(*out); n >= least && n <= most {
		shape.Default = n
	}
	return Scalar{Of: shape, Read: func(n Node) {
		x, ok := ParseInteger(n.Raw())
		if !ok || !n.Is("!!int") || x < least || x > most {
			n.Failf("must be a whole number, %s, not %s%s", money.Grouped(fmt.Sprintf("%d to %d", least, most)), n.Describe(), Grouping(n.Raw()))
			return
		}
		*out = T(x)
	}}
}

// Thousandths is a number with at most three decimals, times 1000.
func Thousandths(out *int64, least, most int64) Schema {
	shape := numbers("number", least, most)
	if *out > 0 && *out >= least {
		shape.Default = json.Number(Decimal(*out))
	}
	return Scalar{Of: shape, Read: func(n Node) {
		x, ok := parseThousandths(n.Raw())
		if !ok || !n.Is("!!int", "!!float") || x < least || x > most {
			n.Failf("must be a number, %s with at most three decimals, not %s%s", money.Grouped(Decimal(least)+" to "+Decimal(most)), n.Describe(), Grouping(n.Raw()))
			return
		}
		*out = x
	}}
}

// grouped is the pattern of digits that '_' may group.
const grouped = `[0-9]+(_[0-9]+)*`

// numbers describes numbers within bounds, in thousandths. Editors take a number with '_' for text.
func numbers(kind string, least, most int64) Shape {
	shape := Shape{Type: []string{kind, "string"}, Pattern: `^` + grouped + `(\.[0-9]+)?$`, Minimum: json.Number(Decimal(least)), Maximum: json.Number(Decimal(most))}
	shape.Range = Decimal(least) + " to " + Decimal(most)
	return shape
}

// Duration is a duration in the form of Go.
func Duration(out *time.Duration, least, most time.Duration) Schema {
	shape := Shape{Type: []string{"string"}, Pattern: `^([0-9.]+(ns|us|µs|ms|s|m|h))+$|^0$`, Kind: "duration", Range: ShortDuration(least) + " to " + ShortDuration(most)}
	if *out >= least && *out <= most && *out > 0 {
		shape.Default = ShortDuration(*out)
	}
	return Scalar{Of: shape, Read: func(n Node) {
		if !n.Is("!!str") {
			hint := ""
			if n.Is("!!int") && !n.hidden[n.yaml] {
				hint = ": write a unit, such as " + n.Raw() + unitFor(n.Raw(), least, most)
			}
			n.Failf("must be a duration, such as 15ms or 1h30m, not %s%s", n.Describe(), hint)
			return
		}
		x, err := time.ParseDuration(n.Raw())
		switch {
		case err != nil:
			n.Failf("must be a duration, such as 15ms or 1h30m, not %s; the units are ms, s, m and h", n.Describe())
		case x < least || x > most:
			n.Failf("must be %s to %s, not %s", ShortDuration(least), ShortDuration(most), ShortDuration(x))
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
	return Scalar{Of: Shape{Type: []string{"string"}, Pattern: ":[0-9]+$", Kind: "address", Default: given(*out)}, Read: func(n Node) {
		if !IsAddress(n.Raw()) || !n.IsScalar() {
			n.Failf("must be a host and a port from 0 to 65535, such as 127.0.0.1:8080 or [::1]:8080, not %s", n.Describe())
			return
		}
		*out = n.Raw()
	}}
}

// IsAddress reports whether text is a host, which may be "", and a port.
func IsAddress(text string) bool {
	_, port, err := net.SplitHostPort(text)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	return err == nil
}

// ParseInteger reads decimal digits, which '_' may group: "2_000_000", see [money.Digits]. It refuses
// signs, leading zeros and other bases, as readers of YAML disagree about them.
func ParseInteger(s string) (int64, bool) {
	digits, ok := money.Digits(s)
	if !ok || digits[0] == '0' && len(digits) > 1 {
		return 0, false
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	return n, err == nil
}

// Grouping tells how digits are grouped, where a text groups them otherwise, and else nothing.
func Grouping(text string) string {
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return r != '_' && (r < '0' || r > '9') }) {
		if _, ok := money.Digits(part); !ok && part != "_" {
			return "; " + money.Grouping
		}
	}
	return ""
}

// maxNumber is the largest number with decimals.
const maxNumber = 1_000_000_000_000

// parseThousandths reads a number with at most three decimals and returns it times 1000: "2.5" is
// 2500.
func parseThousandths(s string) (int64, bool) {
	whole, fraction, point := strings.Cut(s, ".")
	n, ok := ParseInteger(whole)
	if !ok || n > maxNumber || point && (fraction == "" || len(fraction) > 3) {
		return 0, false
	}
	n *= 1000
	for i, unit := 0, int64(100); i < len(fraction); i, unit = i+1, unit/10 {
		if !isDigit(fraction[i]) {
			return 0, false
		}
		n += int64(fraction[i]-'0') * unit
	}
	return n, true
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// Decimal writes thousandths as a number: 2500 is "2.5".
func Decimal(n int64) string {
	if n%1000 == 0 {
		return strconv.FormatInt(n/1000, 10)
	}
	return strings.TrimRight(fmt.Sprintf("%d.%03d", n/1000, n%1000), "0")
}
