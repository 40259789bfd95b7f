package api

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Tokens is a number of tokens in thousandths. In JSON it is a number with at most three
// decimals.
type Tokens int64

// milli is a token in thousandths.
const milli = 1000

// String returns the number with decimals only where they are not zero: 2, 0.5, -1.25.
func (n Tokens) String() string {
	sign, rest := "", n%milli
	if n < 0 {
		sign, rest = "-", -rest
	}
	whole := n / milli
	if whole < 0 {
		whole = -whole
	}
	text := sign + strconv.FormatInt(int64(whole), 10)
	if rest == 0 {
		return text
	}
	return text + "." + strings.TrimRight(fmt.Sprintf("%03d", rest), "0")
}

// ParseTokens reads the form of [Tokens.String].
func ParseTokens(text string) (Tokens, error) {
	digits, negative := strings.CutPrefix(text, "-")
	whole, decimals, point := strings.Cut(digits, ".")
	n, err := strconv.ParseUint(whole+(decimals + "000")[:3], 10, 63)
	if errors.Is(err, strconv.ErrRange) || err == nil && n > math.MaxInt64/2 {
		return 0, fmt.Errorf("%.100q is too large: at most 1000000000000000 tokens are possible", text)
	}
	if err != nil || whole == "" || len(decimals) > 3 || point && decimals == "" {
		return 0, fmt.Errorf("%.100q is no number of tokens: it is a number with at most three decimals, such as 5 or 0.5", text)
	}
	if negative {
		return -Tokens(n), nil // #nosec G115 -- it has 63 bits
	}
	return Tokens(n), nil // #nosec G115 -- it has 63 bits
}

// MarshalJSON implements json.Marshaler.
func (n Tokens) MarshalJSON() ([]byte, error) { return []byte(n.String()), nil }

// UnmarshalJSON implements json.Unmarshaler.
func (n *Tokens) UnmarshalJSON(text []byte) (err error) {
	*n, err = ParseTokens(string(text))
	return err
}
