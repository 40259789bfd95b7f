package descriptor

import (
	"errors"
	"fmt"
	"strings"
)

// template is text with placeholders, parsed and bound to the captures of a rule.
type template struct {
	parts []part
}

// part is a piece of a template: text, or a placeholder.
type part struct {
	text    string      // of a literal; of a placeholder its name
	capture int         // index in Rule.captures, -1 for a literal
	stop    string      // first byte of the literal that follows; "" when none follows
	bits    *prefixBits // cuts an address; nil = the value as it is
}

const literal = -1

// parseTemplate splits a template into parts. Placeholders are not bound yet.
func parseTemplate(text string) (template, error) {
	if text == "" {
		return template{}, errors.New("is empty; write a name, or a placeholder like {key}")
	}
	var t template
	for rest := text; rest != ""; {
		i := strings.IndexAny(rest, "{}")
		if i < 0 {
			t.addLiteral(rest)
			break
		}
		t.addLiteral(rest[:i])
		rest = rest[i:]
		if len(rest) > 1 && rest[0] == rest[1] {
			t.addLiteral(rest[:1])
			rest = rest[2:]
			continue
		}
		if rest[0] == '}' {
			return template{}, fmt.Errorf("%q has a '}' without a '{'; write '}}' for the character", text)
		}
		end := strings.IndexByte(rest, '}')
		if end < 0 {
			return template{}, fmt.Errorf("%q has a '{' without a '}'; write '{{' for the character", text)
		}
		if err := t.addPlaceholder(text, rest[1:end]); err != nil {
			return template{}, err
		}
		rest = rest[end+1:]
	}
	return t, t.setStops(text)
}

func (t *template) addLiteral(text string) {
	if text == "" {
		return
	}
	if n := len(t.parts); n > 0 && t.parts[n-1].capture == literal {
		t.parts[n-1].text += text
		return
	}
	t.parts = append(t.parts, part{text: text, capture: literal})
}

func (t *template) addPlaceholder(text, name string) error {
	if name == "" {
		return fmt.Errorf("%q has a placeholder without a name; write {key}", text)
	}
	if n := len(t.parts); n > 0 && t.parts[n-1].capture != literal {
		return fmt.Errorf("%q has {%s} and {%s} with nothing between them, so that different values could give one name; write {%s}/{%s}",
			text, t.parts[n-1].text, name, t.parts[n-1].text, name)
	}
	t.parts = append(t.parts, part{text: name, capture: 0})
	return nil
}

// setStops gives every placeholder the byte that ends it. This byte cannot be '%', which begins an
// escape.
func (t *template) setStops(text string) error {
	for i := range t.parts {
		p := &t.parts[i]
		if p.capture == literal || i+1 == len(t.parts) {
			continue
		}
		p.stop = t.parts[i+1].text[:1]
		if p.stop == "%" {
			return fmt.Errorf("%q has a '%%' right after {%s}, where it would look like an escaped byte; put another character between them, like '/'", text, p.text)
		}
	}
	return nil
}

// isLiteral reports whether the template has no placeholder.
func (t *template) isLiteral() bool {
	return len(t.parts) == 1 && t.parts[0].capture == literal
}

// placeholders calls fn for each placeholder, and stops at its first error.
func (t *template) placeholders(fn func(p *part) error) error {
	for i := range t.parts {
		if t.parts[i].capture == literal {
			continue
		}
		if err := fn(&t.parts[i]); err != nil {
			return err
		}
	}
	return nil
}

// present reports whether every placeholder has a value.
func (t *template) present(values []captured) bool {
	for i := range t.parts {
		if p := &t.parts[i]; p.capture != literal && !values[p.capture].present {
			return false
		}
	}
	return true
}

// render returns the template's text for the values. A template that is one placeholder gives the
// value itself. In all others the values are escaped, so that different values give different
// texts. buf is working memory, and is returned.
func (t *template) render(values []captured, buf []byte) (text string, scratch []byte) {
	if len(t.parts) == 1 {
		if p := &t.parts[0]; p.capture != literal {
			return p.value(values), buf
		}
		return t.parts[0].text, buf
	}
	buf = buf[:0]
	for i := range t.parts {
		if p := &t.parts[i]; p.capture == literal {
			buf = append(buf, p.text...)
		} else {
			buf = p.appendValue(buf, values)
		}
	}
	return string(buf), buf
}

// appendEscaped appends the value with '%', '/' and the bytes of also percent-escaped.
func appendEscaped(buf []byte, value, also string) []byte {
	const hex = "0123456789ABCDEF"
	for i := range len(value) {
		c := value[i]
		if c == '%' || c == '/' || strings.IndexByte(also, c) >= 0 {
			buf = append(buf, '%', hex[c>>4], hex[c&15])
		} else {
			buf = append(buf, c)
		}
	}
	return buf
}

// captured is the value of a placeholder.
type captured struct {
	value   string
	present bool
}
