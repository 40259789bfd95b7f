package yamlcfg

import (
	"fmt"
	"strings"

	"github.com/ratelimit/ratelimit/pkg/money"
)

// Tokens is a whole number of tokens within bounds, or an amount of dollars, see [ParseTokens].
func Tokens(out *int64, least, most int64) Schema {
	shape := numbers("integer", least*1000, most*1000)
	shape.Pattern = `^[0-9][0-9_]*((\.[0-9]{1,6})? USD)?$`
	return Scalar{Of: shape, Read: func(n Node) {
		x, ok := ParseTokens(n.Raw())
		dollars := strings.HasSuffix(n.Raw(), money.Unit)
		if !ok || !n.Is("!!int") && !dollars || !n.IsScalar() || x < least || x > most {
			n.Failf("must be a whole number, %s, or dollars, such as 12.50 USD, not %s", money.Grouped(fmt.Sprintf("%d to %d", least, most)), n.Describe())
			return
		}
		*out = x
	}}
}

// ParseTokens reads a number of tokens: digits as [ParseInteger] does, or dollars as [money.Parse] does.
func ParseTokens(s string) (int64, bool) {
	if strings.HasSuffix(s, money.Unit) {
		return money.Parse(s)
	}
	return ParseInteger(s)
}
