package yamlcfg

import (
	"fmt"
	"strings"

	"github.com/ratelimit/ratelimit/pkg/money"
)

// dollars is the pattern of an amount of tokens that may be dollars.
const dollars = `^` + grouped + `((\.[0-9]{1,6})? USD)?$`

// Tokens is a whole number of tokens within bounds, or an amount of dollars, see [ParseTokens].
func Tokens(out *int64, least, most int64) Schema {
	shape := numbers("integer", least*1000, most*1000)
	shape.Pattern = dollars
	return Scalar{Of: shape, Read: func(n Node) {
		x, ok := ParseTokens(n.Raw())
		if !ok || !n.Is("!!int") && !isDollars(n) || !n.IsScalar() || x < least || x > most {
			n.Failf("must be a whole number, %s, or dollars, such as 12.50 USD, not %s%s", money.Grouped(fmt.Sprintf("%d to %d", least, most)), n.Describe(), Grouping(n.Raw()))
			return
		}
		*out = x
	}}
}

// Amount is [Thousandths], or an amount of dollars within the same bounds. Their token is a millionth of a dollar.
func Amount(out *int64, least, most int64) Schema {
	number := Thousandths(out, least, most)
	shape := *number.Shape()
	shape.Pattern = `^` + grouped + `(\.[0-9]+)?( USD)?$`
	return Scalar{Of: shape, Read: func(n Node) {
		if !isDollars(n) {
			number.Decode(n)
			return
		}
		x, ok := money.Parse(n.Raw())
		if !ok || x > most/1000 || x*1000 < least {
			n.Failf("must be dollars, %s to %s, such as 12.50 USD, not %s%s", money.Text(Decimal(least)), money.Text(Decimal(most)), n.Describe(), Grouping(n.Raw()))
			return
		}
		*out = x * 1000
	}}
}

// isDollars reports whether a value is text that ends in the unit of dollars.
func isDollars(n Node) bool { return n.IsScalar() && strings.HasSuffix(n.Raw(), money.Unit) }

// ParseTokens reads a number of tokens: digits as [ParseInteger] does, or dollars as [money.Parse] does.
func ParseTokens(s string) (int64, bool) {
	if strings.HasSuffix(s, money.Unit) {
		return money.Parse(s)
	}
	return ParseInteger(s)
}
