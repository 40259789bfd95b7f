package schema

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

const (
	// maxNamePart is the most bytes that one name takes in a key.
	maxNamePart = 200
	// namePrefix is how much of a long name is left in front of its hash, for people.
	namePrefix = maxNamePart - 1 - 2*sha256.Size
	// MaxNameAttribute is the longest name that is also kept in full, as an attribute.
	MaxNameAttribute = 4 << 10
	// emptyName stands for the empty name: DynamoDB takes no empty string in a key.
	emptyName = "~"
	hexDigits = "0123456789ABCDEF"
)

// EscapeName returns a name as it stands in keys, one to one for any bytes. Separators
// of a key ('#', '/'), marks of special forms ('%', '~', '$'), control characters, and
// bytes that are not UTF-8 stand as %XX. A name that is then longer than 200 bytes stands
// as its beginning, '~' and its SHA-256. The result has 1 to 200 bytes.
func EscapeName(name string) string {
	if name == "" {
		return emptyName
	}
	if len(name) <= maxNamePart && isPlain(name) {
		return name
	}
	var b strings.Builder
	b.Grow(maxNamePart)
	for prefix, rest := 0, name; rest != ""; {
		rest = escapeNext(&b, rest)
		if b.Len() <= namePrefix {
			prefix = b.Len()
		}
		if b.Len() > maxNamePart {
			sum := sha256.Sum256([]byte(name))
			return b.String()[:prefix] + "~" + hex.EncodeToString(sum[:])
		}
	}
	return b.String()
}

// escapeNext writes the next character of s as it stands in keys, and returns the rest.
func escapeNext(b *strings.Builder, s string) (rest string) {
	r, size := utf8.DecodeRuneInString(s)
	if size == 1 && (mustEscape(s[0]) || r == utf8.RuneError) {
		b.Write([]byte{'%', hexDigits[s[0]>>4], hexDigits[s[0]&15]})
	} else {
		b.WriteString(s[:size])
	}
	return s[size:]
}

// escapeAll is escapeName for names of any length in full.
func escapeAll(name string) string {
	if name == "" {
		return emptyName
	}
	var b strings.Builder
	for rest := name; rest != ""; {
		rest = escapeNext(&b, rest)
	}
	return b.String()
}

// unescapeAll undoes escapeAll.
func unescapeAll(s string) (string, error) {
	if s == emptyName {
		return "", nil
	}
	return unescape(s)
}

// IsHashed reports whether the name is too long to stand in keys in full.
func IsHashed(name string) bool { return name != "" && strings.Contains(EscapeName(name), "~") }

// isPlain reports whether the name stands in keys as it is.
func isPlain(name string) bool {
	for i := range len(name) {
		if mustEscape(name[i]) {
			return false
		}
	}
	return utf8.ValidString(name)
}

func mustEscape(c byte) bool {
	switch c {
	case '%', '#', '/', '~', '$':
		return true
	default:
		return c < ' ' || c == 0x7f
	}
}

// unescape undoes the escapes of a name.
func unescape(s string) (string, error) {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(s, "%")
		b.WriteString(before)
		if !found {
			return b.String(), nil
		}
		if len(rest) < 2 {
			return "", errors.New("ends within an escape")
		}
		c, err := hex.DecodeString(rest[:2])
		if err != nil {
			return "", fmt.Errorf("%%%s is not an escape", rest[:2])
		}
		b.Write(c)
		s = rest[2:]
	}
}

// NameAttribute returns a name in full as an attribute, in the form of [TextAttribute]. It
// is nil for a name of more than [MaxNameAttribute] bytes: a list then shows the form that
// the name has in keys.
func NameAttribute(name string) types.AttributeValue {
	if len(name) > MaxNameAttribute {
		return nil
	}
	return TextAttribute(name)
}

// TextAttribute returns any bytes as an attribute: a string where they are one,
// so that people can read it, else binary.
func TextAttribute(s string) types.AttributeValue {
	if utf8.ValidString(s) {
		return &types.AttributeValueMemberS{Value: s}
	}
	return &types.AttributeValueMemberB{Value: []byte(s)}
}
