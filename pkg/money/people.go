package money

import (
	"strconv"
	"strings"
)

// minGrouped is the fewest digits that are grouped.
const minGrouped = 5

// Amounts writes the text of a limit, or an amount of it, as people read it: digits in groups of three, as in
// 2_000_000/month, and dollars for a limit of money. The configuration and the commands read it so.
func Amounts(limit, text string) string {
	if !Is(limit) || strings.Contains(text, " in flight ") {
		return Grouped(text)
	}
	words := strings.Split(text, " ")
	for i, word := range words {
		amount, rest, rate := strings.Cut(word, "/")
		if i > 0 && words[i-1] == "from" { // a day
			continue
		}
		if words[i] = Grouped(Text(amount)); rate {
			words[i] += "/" + rest
		}
	}
	return strings.Join(words, " ")
}

// Amount is [Amounts] of a whole number.
func Amount(limit string, tokens int64) string {
	return Amounts(limit, strconv.FormatInt(tokens, 10))
}

// Counted is [Amounts] of an amount, and names tokens where they are no dollars: 5 USD, 1_000_000 tokens.
func Counted(limit, amount string) string {
	if Is(limit) {
		return Amounts(limit, amount)
	}
	return Grouped(amount) + " tokens"
}

// Bounds writes the least and the greatest amount of a limit.
func Bounds(limit string, least, most int64) string {
	return Amount(limit, least) + " to " + Counted(limit, strconv.FormatInt(most, 10))
}

// Grouped groups the digits at the begin of each word by threes.
func Grouped(text string) string {
	words := strings.Split(text, " ")
	for i, word := range words {
		sign, word := word[:len(word)-len(strings.TrimPrefix(word, "-"))], strings.TrimPrefix(word, "-")
		digits := len(word) - len(strings.TrimLeft(word, "0123456789"))
		if digits < minGrouped {
			continue
		}
		var out strings.Builder
		for k, digit := range word[:digits] {
			if k > 0 && (digits-k)%3 == 0 {
				out.WriteByte('_')
			}
			out.WriteRune(digit)
		}
		words[i] = sign + out.String() + word[digits:]
	}
	return strings.Join(words, " ")
}
