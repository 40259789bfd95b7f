// Package money reads and writes amounts of US dollars. A token of a limit of money is a millionth of a dollar,
// so that a price for a million tokens of a model is the weight of one.
package money

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

const (
	// Unit ends an amount of dollars.
	Unit = " USD"
	// Tokens is the number of tokens of a dollar.
	Tokens = 1_000_000
	// Cent is the number of tokens of a cent. Fewer are probably a number of dollars without its unit.
	Cent = Tokens / 100

	decimals   = 6 // of a token
	maxDollars = 1_000_000_000_000
)

// Is reports whether a limit of this name counts money. Its first part is usd, or ends in _usd or -usd: usd,
// usd.month, team_usd.
func Is(limit string) bool {
	name, _, _ := strings.Cut(limit, ".")
	return name == "usd" || strings.HasSuffix(name, "_usd") || strings.HasSuffix(name, "-usd")
}

// NotMoney is the refusal of dollars for a limit that [Is] does not name.
func NotMoney(limit string) string {
	return "counts tokens, and no dollars: a limit of money has a name that is usd or ends in _usd, such as " + limit + "_usd"
}

// Foreign is the refusal of an amount of money in a text that is not in dollars, or not written as [Parse] reads them:
// "5 EUR/month", "5USD"; "" = there is none.
func Foreign(text string) string {
	for _, m := range regexp.MustCompile(`(?:^| )([0-9][0-9_.]*)( *)([A-Z]{3}|usd)\b`).FindAllStringSubmatch(text, -1) {
		if m[2]+m[3] != Unit {
			return fmt.Sprintf("%.100q is no amount of money: it is in US dollars and written like %.50s%s", strings.TrimSpace(m[0]), m[1], Unit)
		}
	}
	return ""
}

// Explain returns the error about a text, or where the text has such an amount its refusal. nil stays nil.
func Explain(text string, err error) error {
	if err != nil {
		if foreign := Foreign(text); foreign != "" {
			return errors.New(foreign)
		}
	}
	return err
}

// Parse reads dollars with at most six decimals, such as "12.50 USD" or "1_000 USD", as tokens.
func Parse(text string) (int64, bool) {
	amount, ok := strings.CutSuffix(text, Unit)
	grouped, fraction, point := strings.Cut(amount, ".")
	whole, grouping := Digits(grouped)
	if !ok || !grouping || point && !isDigits(fraction) || len(fraction) > decimals || len(whole) > 1 && whole[0] == '0' {
		return 0, false
	}
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || n > maxDollars {
		return 0, false
	}
	part, err := strconv.ParseInt(fraction+strings.Repeat("0", decimals-len(fraction)), 10, 64)
	return n*Tokens + part, err == nil
}

// Grouping says how digits are grouped, see [Digits].
const Grouping = "digits are grouped by one _ between two of them, such as 25_000_000"

// Digits returns decimal digits without their separators: one '_' with digits on both sides, as in "25_000_000". It is
// false for any other text.
func Digits(text string) (digits string, ok bool) {
	for group := range strings.SplitSeq(text, "_") {
		if !isDigits(group) {
			return "", false
		}
	}
	return strings.ReplaceAll(text, "_", ""), true
}

func isDigits(text string) bool { return text != "" && strings.Trim(text, "0123456789") == "" }

// Text writes an amount of tokens, which may have decimals, as dollars: "1500000" is "1.50 USD". Whole dollars
// have no decimals, and others at least two. A text that is no number is returned as it is.
func Text(tokens string) string {
	sign, digits := "", tokens
	if rest, minus := strings.CutPrefix(tokens, "-"); minus {
		sign, digits = "-", rest
	}
	whole, milli, _ := strings.Cut(digits, ".")
	if whole == "" || strings.Trim(whole+milli, "0123456789") != "" {
		return tokens
	}
	whole = strings.Repeat("0", max(0, decimals+1-len(whole))) + whole
	dollars, fraction := whole[:len(whole)-decimals], strings.TrimRight(whole[len(whole)-decimals:]+milli, "0")
	if fraction == "" {
		return sign + dollars + Unit
	}
	return sign + dollars + "." + fraction + strings.Repeat("0", max(0, 2-len(fraction))) + Unit
}
