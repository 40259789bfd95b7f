package yamlcfg

import "strings"

// dollars ends an amount of money.
const dollars = " USD"

// Tokens is a whole number of tokens within bounds, or an amount of dollars, see [ParseTokens].
func Tokens(out *int64, least, most int64) Schema {
	shape := numbers("integer", least*1000, most*1000)
	shape.Pattern = `^[0-9][0-9_]*((\.[0-9]{1,6})? USD)?$`
	return Scalar{Of: shape, Read: func(n Node) {
		x, ok := ParseTokens(n.Raw())
		money := strings.HasSuffix(n.Raw(), dollars)
		if !ok || !n.Is("!!int") && !money || !n.IsScalar() || x < least || x > most {
			n.Failf("must be a whole number, %d to %d, or dollars, such as 12.50 USD, not %s", least, most, n.Describe())
			return
		}
		*out = x
	}}
}

// ParseTokens reads a number of tokens: digits as [ParseInteger] does, or dollars with at most six decimals, such as
// "12.50 USD". A token of such an amount is a millionth of a dollar.
func ParseTokens(s string) (int64, bool) {
	amount, money := strings.CutSuffix(s, dollars)
	if !money {
		return ParseInteger(s)
	}
	whole, fraction, point := strings.Cut(amount, ".")
	n, ok := ParseInteger(whole)
	if !ok || n > maxNumber || point && (fraction == "" || len(fraction) > 6) {
		return 0, false
	}
	n *= 1_000_000
	for i, unit := 0, int64(100_000); i < len(fraction); i, unit = i+1, unit/10 {
		if !isDigit(fraction[i]) {
			return 0, false
		}
		n += int64(fraction[i]-'0') * unit
	}
	return n, true
}
