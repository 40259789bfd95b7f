package descriptor_test

import (
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
)

// A name in braces is a placeholder, one in two braces is text, and other braces are text too.
func TestBodyParts(t *testing.T) {
	for text, want := range map[string]string{
		"":                            "",
		"Slow down.":                  "Slow down.",
		"{limit}":                     "<limit>",
		"{limit}{status}":             "<limit><status>",
		"in {retry_after} s":          "in <retry_after> s",
		`{"a":{"b":{retry_after}}}`:   `{"a":{"b":<retry_after>}}`,
		`{"limit":"{limit}"}`:         `{"limit":"<limit>"}`,
		"{{limit}} is {limit}":        "{limit} is <limit>",
		"{{limit}":                    "{<limit>",
		"{{limit}}}":                  "{limit}}",
		"{{{limit}}}":                 "{{limit}}",
		"{} {1} { limit } {a:b} {a b": "{} {1} { limit } {a:b} {a b",
		"{Retry-After}":               "<Retry-After>",
	} {
		var got strings.Builder
		for part, placeholder := range descriptor.BodyParts(text) {
			if placeholder {
				part = "<" + part + ">"
			}
			got.WriteString(part)
		}
		if got.String() != want {
			t.Errorf("%q: got %q, want %q", text, got.String(), want)
		}
	}
}

func TestCheckBody(t *testing.T) {
	for text, want := range map[string]string{
		"{limit} {message} {reason} {remaining} {retry_after} {status} {{wait}}": "",
		`{"error": {"wait": {retry_after}}}`:                                     "",
		strings.Repeat("{limit}", 16):                                            "",
		strings.Repeat("{limit}", 17):                                            "has more than 16 placeholders",
		"wait {wait}":                                                            "has the placeholder {wait}; there is {limit}, {message}, {reason}, {remaining}, {retry_after}, {status}, and {{wait}} is the text {wait}",
	} {
		got := ""
		if err := descriptor.CheckBody(text); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
