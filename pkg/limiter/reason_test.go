package limiter

import (
	"errors"
	"strings"
	"testing"
)

// A reason is one line of text that prints, and not too long. Any text of a Go program is made one.
func TestReasons(t *testing.T) {
	for text, ok := range map[string]bool{
		"": true, "abuse, ticket 7": true, "überprüft – 東京": true, strings.Repeat("ü", MaxReason): true, strings.Repeat("a", MaxReason+1): false,
		"two\nlines": false, "tab\t": false, "\x1b[31mred": false, "a\u202eb": false, "\xff": false, "nul\x00": false,
	} {
		err := CheckReason(text)
		if (err == nil) != ok || err != nil && !errors.Is(err, ErrInvalid) {
			t.Errorf("%q: %v, want that it passes: %t", text, err, ok)
		}
		got := ReasonFrom(WithReason(t.Context(), text))
		if CheckReason(got) != nil || ok && got != text {
			t.Errorf("%q is stored as %q", text, got)
		}
	}
	if got := ReasonFrom(t.Context()); got != "" {
		t.Errorf("got %q without a reason", got)
	}
}
