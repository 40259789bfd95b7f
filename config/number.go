package config

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

const (
	minPeriod = time.Second
	maxPeriod = 366 * 24 * time.Hour
	day       = 24 * time.Hour
)

// parseInteger reads decimal digits, which may have '_' between them: "2_000_000". It refuses
// signs, leading zeros and other bases, as readers of YAML disagree about them.
func parseInteger(s string) (int64, bool) {
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

// parseThousandths reads a number with at most three decimals and returns it times 1000: "2.5" is
// 2500.
func parseThousandths(s string) (int64, bool) {
	whole, fraction, point := strings.Cut(s, ".")
	n, ok := parseInteger(whole)
	if !ok || n > limiter.MaxTokens || point && (fraction == "" || len(fraction) > 3) {
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

// decimal writes thousandths as a number: 2500 is "2.5".
func decimal(n int64) string {
	if n%1000 == 0 {
		return strconv.FormatInt(n/1000, 10)
	}
	return strings.TrimRight(fmt.Sprintf("%d.%03d", n/1000, n%1000), "0")
}

var errRate = errors.New(`must be a rate, such as 100/minute, 5/30s or 1000/day, or unlimited`)

// parseRate reads "100/minute": tokens, 1 to limiter.MaxTokens, and a period.
func parseRate(s string) (tokens int64, period time.Duration, err error) {
	count, unit, ok := strings.Cut(s, "/")
	if !ok {
		if _, number := parseInteger(s); number {
			return 0, 0, fmt.Errorf("%w: a rate needs a period: write %s/minute", errRate, s)
		}
		return 0, 0, fmt.Errorf("%w, not %q", errRate, s)
	}
	period, err = parsePeriod(unit)
	if err != nil {
		return 0, 0, err
	}
	tokens, ok = parseInteger(count)
	if !ok || tokens < 1 || tokens > limiter.MaxTokens {
		return 0, 0, fmt.Errorf("a rate must begin with a whole number of tokens, 1 to %d, not %q", int64(limiter.MaxTokens), count)
	}
	return tokens, period, nil
}

func parsePeriod(s string) (time.Duration, error) {
	switch s {
	case "second":
		return time.Second, nil
	case "minute":
		return time.Minute, nil
	case "hour":
		return time.Hour, nil
	case "day":
		return day, nil
	case "week":
		return 7 * day, nil
	case "month", "year":
		return 0, fmt.Errorf("a %s has no fixed length: write hours, such as 720h for 30 days", s)
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		const rule = "a period must be second, minute, hour, day, week or a duration such as 30s or 2h30m"
		return 0, fmt.Errorf("%s, not %q%s", rule, s, periodHint(s))
	}
	if d < minPeriod || d > maxPeriod || d%time.Millisecond != 0 {
		return 0, fmt.Errorf("a period must be 1s to %s (366 days), in whole milliseconds, not %s", shortDuration(maxPeriod), s)
	}
	return d, nil
}

// periodHint suggests the unit that was probably meant.
func periodHint(s string) string {
	for short, unit := range map[string]string{"s": "second", "sec": "second", "m": "minute", "min": "minute", "h": "hour", "hr": "hour", "d": "day", "w": "week"} {
		if strings.EqualFold(s, short) {
			return fmt.Sprintf("; did you mean %q?", unit)
		}
	}
	return didYouMean(s, []string{"second", "minute", "hour", "day", "week"})
}

// ParseRate reads a rate in the form of a file, "100/minute" or "unlimited". It returns the limit
// of that rate, without a name. Its error says how to write a rate.
func ParseRate(s string) (limiter.Limit, error) {
	if s == "unlimited" {
		return limiter.Unlimited(""), nil
	}
	tokens, period, err := parseRate(s)
	if err != nil {
		return limiter.Limit{}, err
	}
	return limiter.Custom("", tokens, tokens, period), nil
}
