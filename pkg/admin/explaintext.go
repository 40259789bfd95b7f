package admin

import (
	"fmt"
	"strconv"
	"unicode"
	"unicode/utf8"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// tokens writes millitokens as tokens, with decimals only where they are not zero.
func tokens(milli int64) string {
	sign := ""
	if milli < 0 {
		sign, milli = "-", -milli
	}
	s := sign + strconv.FormatInt(milli/limiter.Milli, 10)
	if rest := milli % limiter.Milli; rest != 0 {
		s += fmt.Sprintf(".%03d", rest)
	}
	return s
}

// printable returns plain text unchanged, and any other text quoted.
func printable(s string) string {
	if utf8.ValidString(s) {
		plain := true
		for _, r := range s {
			plain = plain && unicode.IsPrint(r)
		}
		if plain {
			return s
		}
	}
	return strconv.QuoteToASCII(s)
}
