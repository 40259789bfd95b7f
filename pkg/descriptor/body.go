package descriptor

import (
	"fmt"
	"iter"
	"slices"
	"strings"
)

// MaxBody is the greatest length of a body of denials, in bytes.
const MaxBody = 4096

// maxPlaceholders is the greatest number of placeholders of a body. A filled body has at most some kilobytes more
// than its text.
const maxPlaceholders = 16

// Body is the body of denials. The zero Body is none.
type Body struct {
	Form BodyForm
	Text string // of BodyText, with placeholders, see [BodyParts]; at most MaxBody bytes
	Type string // content type of BodyText; "" = text/plain
}

// BodyForm is the form of a body.
type BodyForm uint8

// The forms.
const (
	NoBody      BodyForm = iota
	BodyText             // the text
	BodyOpenAI           // JSON, as the API of OpenAI answers
	BodyProblem          // JSON of RFC 9457
)

// The placeholders of a text. Their values need no escaping in JSON.
const (
	BodyLimit      = "limit"       // name of the limit that denied; nothing of a denial without one
	BodyMessage    = "message"     // the sentence of the other forms
	BodyReason     = "reason"      // the reason, such as limit_exhausted
	BodyRemaining  = "remaining"   // whole tokens that are left of the limit, 0 without one
	BodyRetryAfter = "retry_after" // seconds until the call would pass; 0 = never, or not known
	BodyStatus     = "status"      // status of HTTP
)

// placeholdersOfBody are all placeholders.
func placeholdersOfBody() []string {
	return []string{BodyLimit, BodyMessage, BodyReason, BodyRemaining, BodyRetryAfter, BodyStatus}
}

// CheckBody refuses an unknown placeholder of a text, and too many of them.
func CheckBody(text string) error {
	n := 0
	for name, filled := range BodyParts(text) {
		if !filled {
			continue
		}
		if n++; n > maxPlaceholders {
			return fmt.Errorf("has more than %d placeholders", maxPlaceholders)
		}
		if all := placeholdersOfBody(); !slices.Contains(all, name) {
			return fmt.Errorf("has the placeholder {%[1]s}; there is {%[2]s}, and {{%[1]s}} is the text {%[1]s}", name, strings.Join(all, "}, {"))
		}
	}
	return nil
}

// BodyParts returns the parts of a text in order: texts, and names of placeholders with true. A placeholder is a
// name in braces; with two braces on each side it is text. All other braces are text, as those of JSON.
func BodyParts(text string) iter.Seq2[string, bool] {
	return func(yield func(part string, placeholder bool) bool) {
		begin := 0
		for i := 0; ; {
			brace := strings.IndexByte(text[i:], '{')
			if brace < 0 {
				break
			}
			i += brace
			name, quoted := placeholderAt(text[i:])
			end := i + len(name) + len("{}")
			switch {
			case name == "":
				i++
			case quoted: // the inner braces are text
				if !yield(text[begin:i], false) || !yield(text[i+1:end+1], false) {
					return
				}
				i = end + len("{}")
				begin = i
			default:
				if !yield(text[begin:i], false) || !yield(name, true) {
					return
				}
				i, begin = end, end
			}
		}
		yield(text[begin:], false)
	}
}

// placeholderAt returns the name of the placeholder with which a text that begins with a brace begins, "" for none,
// and whether it stands in two braces on each side.
func placeholderAt(text string) (name string, quoted bool) {
	inner, twice := strings.CutPrefix(text[1:], "{")
	n := 0
	for n < len(inner) && isNameByte(inner[n], n) {
		n++
	}
	name, rest := inner[:n], inner[n:]
	if n == 0 || !strings.HasPrefix(rest, "}") || twice && !strings.HasPrefix(rest, "}}") {
		return "", false
	}
	return name, twice
}

// isNameByte reports whether a name in braces may have a byte at a place.
func isNameByte(c byte, at int) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || at > 0 && (c >= '0' && c <= '9' || c == '-' || c == '.')
}
