package limiter

import (
	"context"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxReason is the greatest length of the reason of a change, in characters.
const MaxReason = 256

type reasonKey struct{}

// CheckReason refuses, with [ErrInvalid], a reason that is too long, or is not of characters that
// print.
func CheckReason(text string) error {
	switch n := utf8.RuneCountInString(text); {
	case n > MaxReason:
		return fmt.Errorf("%w: the reason has %d characters; it must have at most %d", ErrInvalid, n, MaxReason)
	case !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsGraphic(r) }):
		return fmt.Errorf("%w: the reason has a character that does not print, such as a line break: it must be one line of text", ErrInvalid)
	}
	return nil
}

// WithReason returns a context whose changes are audited with a reason, for people. A text that
// [CheckReason] refuses is cut, and other characters are replaced by U+FFFD.
func WithReason(ctx context.Context, text string) context.Context {
	if CheckReason(text) != nil {
		text = strings.Map(func(r rune) rune {
			if unicode.IsGraphic(r) {
				return r
			}
			return utf8.RuneError
		}, text)
		all := []rune(text)
		text = string(all[:min(len(all), MaxReason)])
	}
	return context.WithValue(ctx, reasonKey{}, text)
}

// ReasonFrom returns the reason given to WithReason; "" = none.
func ReasonFrom(ctx context.Context) string {
	text, _ := ctx.Value(reasonKey{}).(string)
	return text
}
