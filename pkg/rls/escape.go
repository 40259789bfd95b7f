package rls

import (
	"unicode"
	"unicode/utf8"
)

// maxText is the most bytes of an escaped text in an answer. A longer text is cut, and ends in
// "...".
const maxText = 256

// maxNameLength bounds the bytes of a name that tell it apart from others.
const maxNameLength = 64

const hexDigits = "0123456789abcdef"

// appendEscaped appends text as UTF-8 without control characters. A byte that is not part of a
// printable character becomes \xNN, and a backslash two. Different texts stay different, unless
// they are cut.
func appendEscaped(b []byte, text string) []byte {
	first := len(b)
	for i := 0; i < len(text); {
		if len(b)-first > maxText-utf8.UTFMax*len(`\xNN`) {
			return append(b, "..."...)
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == '\\':
			b = append(b, `\\`...)
		case unicode.IsPrint(r) && (r != utf8.RuneError || size > 1):
			b = append(b, text[i:i+size]...)
		default:
			for _, c := range []byte(text[i : i+size]) {
				b = append(b, '\\', 'x', hexDigits[c>>4], hexDigits[c&0xf])
			}
		}
		i += size
	}
	return b
}

// appendToken appends name, with '_' for each character but letters, digits, '_', '.' and '-'.
// Names of limits have no others, but a header must not depend on that.
func appendToken(b []byte, name string) []byte {
	for _, c := range []byte(name) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '.', c == '-':
			b = append(b, c)
		default:
			b = append(b, '_')
		}
	}
	return b
}

// cut returns the part of a name that counts.
func cut(name string) string { return name[:min(len(name), maxNameLength)] }

// shown returns a name for the log: printable, and cut if it is long.
func shown(name string) string {
	text := string(appendEscaped(nil, cut(name)))
	if len(name) > maxNameLength {
		text += "..."
	}
	return text
}
