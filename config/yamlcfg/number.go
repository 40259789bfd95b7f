package yamlcfg

import (
	"fmt"
	"strconv"
	"strings"
)

// ParseInteger reads decimal digits, which may have '_' between them: "2_000_000". It refuses
// signs, leading zeros and other bases, as readers of YAML disagree about them.
func ParseInteger(s string) (int64, bool) {
	if s == "" || !isDigit(s[0]) || !isDigit(s[len(s)-1]) || s[0] == '0' && len(s) > 1 {
		return 0, false
	}
	s = strings.ReplaceAll(s, "_", "")
	for i := range len(s) {
		if !isDigit(s[i]) {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}

// maxNumber is the largest number with decimals.
const maxNumber = 1_000_000_000_000

// parseThousandths reads a number with at most three decimals and returns it times 1000: "2.5" is
// 2500.
func parseThousandths(s string) (int64, bool) {
	whole, fraction, point := strings.Cut(s, ".")
	n, ok := ParseInteger(whole)
	if !ok || n > maxNumber || point && (fraction == "" || len(fraction) > 3) {
		return 0, false
	}
	n *= 1000
	for i, unit := 0, int64(100); i < len(fraction); i, unit = i+1, unit/10 {
		if !isDigit(fraction[i]) {
			return 0, false
		}
		n += int64(fraction[i]-'0') * unit
	}
	return n, true
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// Decimal writes thousandths as a number: 2500 is "2.5".
func Decimal(n int64) string {
	if n%1000 == 0 {
		return strconv.FormatInt(n/1000, 10)
	}
	return strings.TrimRight(fmt.Sprintf("%d.%03d", n/1000, n%1000), "0")
}
