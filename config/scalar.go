package config

import (
	"net"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// text is any text, which may be "".
func text(out *string) schema {
	return scalar(func(d *decoder, v value) {
		if v.node.Kind != yaml.ScalarNode || v.node.Tag != "!!str" {
			d.failf(v, "must be text, not %s%s", d.describe(v.node), d.quoted(v.node))
			return
		}
		*out = v.node.Value
	})
}

// quoted returns a hint how to write a number or a similar value as text.
func (d *decoder) quoted(n *yaml.Node) string {
	if n.Kind != yaml.ScalarNode || isNull(n) || d.hidden[n] {
		return ""
	}
	return ": write " + strconv.Quote(n.Value)
}

// name is text that is not empty.
func name(out *string) schema {
	return scalar(func(d *decoder, v value) {
		var s string
		text(&s).decode(d, v)
		if s == "" && v.node.Tag == "!!str" {
			d.failf(v, "must not be empty")
			return
		}
		*out = s
	})
}

// literal is a scalar as it is written. Values of descriptors are text: 404 or true in a file mean
// that text.
func literal(out *string) schema {
	return scalar(func(d *decoder, v value) {
		if v.node.Kind != yaml.ScalarNode || isNull(v.node) {
			d.failf(v, "must be text, not %s", d.describe(v.node))
			return
		}
		*out = v.node.Value
	})
}

// names is one name or a list of them.
func names(out *[]string) schema {
	return scalar(func(d *decoder, v value) {
		if v.node.Kind == yaml.SequenceNode {
			list[string]{out: out, item: name}.decode(d, v)
			return
		}
		var s string
		name(&s).decode(d, v)
		if s != "" {
			*out = []string{s}
		}
	})
}

func boolean(out *bool) schema {
	return scalar(func(d *decoder, v value) {
		if v.node.Kind != yaml.ScalarNode || v.node.Tag != "!!bool" {
			d.failf(v, "must be true or false, not %s", d.describe(v.node))
			return
		}
		*out = strings.EqualFold(v.node.Value, "true")
	})
}

// oneOf is one of some words, each with the value that it stands for. The first word is the
// default.
func oneOf[T any](out *T, words ...word[T]) schema {
	return scalar(func(d *decoder, v value) {
		known := make([]string, len(words))
		for i, w := range words {
			if v.node.Kind == yaml.ScalarNode && v.node.Value == w.text {
				*out = w.value
				return
			}
			known[i] = w.text
		}
		hint := ""
		if v.node.Kind == yaml.ScalarNode {
			hint = didYouMean(v.node.Value, known)
		}
		d.failf(v, "must be %s, not %s%s", alternatives(known), d.describe(v.node), hint)
	})
}

type word[T any] struct {
	text  string
	value T
}

// alternatives returns "a, b or c".
func alternatives(words []string) string {
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

func policy(out *limiter.Policy) schema {
	return oneOf(out, word[limiter.Policy]{"allow", limiter.Allow}, word[limiter.Policy]{"deny", limiter.Deny},
		word[limiter.Policy]{"local", limiter.Local})
}

// integer is a whole number within bounds.
func integer(out *int64, least, most int64) schema {
	return scalar(func(d *decoder, v value) {
		n, ok := int64(0), v.node.Kind == yaml.ScalarNode && v.node.Tag == "!!int"
		if ok {
			n, ok = parseInteger(v.node.Value)
		}
		if !ok || n < least || n > most {
			d.failf(v, "must be a whole number, %d to %d, not %s", least, most, d.describe(v.node))
			return
		}
		*out = n
	})
}

// thousandths is a number with at most three decimals, times 1000.
func thousandths(out *int64, least, most int64) schema {
	return scalar(func(d *decoder, v value) {
		n, ok := int64(0), v.node.Kind == yaml.ScalarNode && (v.node.Tag == "!!int" || v.node.Tag == "!!float")
		if ok {
			n, ok = parseThousandths(v.node.Value)
		}
		if !ok || n < least || n > most {
			d.failf(v, "must be a number, %s to %s with at most three decimals, not %s", decimal(least), decimal(most), d.describe(v.node))
			return
		}
		*out = n
	})
}

// share is a part of a limit, 0.001 to 1.
func share(out *int64) schema { return thousandths(out, 1, 1000) }

// duration is a duration in the form of Go.
func duration(out *time.Duration, least, most time.Duration) schema {
	return scalar(func(d *decoder, v value) {
		if v.node.Kind != yaml.ScalarNode || v.node.Tag != "!!str" {
			hint := ""
			if v.node.Tag == "!!int" && !d.hidden[v.node] {
				hint = ": write a unit, such as " + v.node.Value + unitFor(v.node.Value, least, most)
			}
			d.failf(v, "must be a duration, such as 15ms or 1h30m, not %s%s", d.describe(v.node), hint)
			return
		}
		x, err := time.ParseDuration(v.node.Value)
		switch {
		case err != nil:
			d.failf(v, "must be a duration, such as 15ms or 1h30m, not %s; the units are ms, s, m and h", d.describe(v.node))
		case x < least || x > most:
			d.failf(v, "must be %s to %s, not %s", shortDuration(least), shortDuration(most), shortDuration(x))
		default:
			*out = x
		}
	})
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

// shortDuration is a duration without parts that are zero: 1h, not 1h0m0s.
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}

// address is a host and a port, "0.0.0.0:8081". Without a host it is all interfaces.
func address(out *string) schema {
	return scalar(func(d *decoder, v value) {
		_, port, err := net.SplitHostPort(v.node.Value)
		if err == nil {
			_, err = strconv.ParseUint(port, 10, 16)
		}
		if err != nil || v.node.Kind != yaml.ScalarNode {
			d.failf(v, "must be a host and a port from 0 to 65535, such as 127.0.0.1:8080 or [::1]:8080, not %s", d.describe(v.node))
			return
		}
		*out = v.node.Value
	})
}
