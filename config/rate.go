package config

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ratelimit/ratelimit/config/yamlcfg"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

const (
	minPeriod = time.Second
	maxPeriod = 366 * day
)

var errRate = errors.New(`must be a rate, such as 100/minute, 5/30s or 1000/day, or unlimited`)

// ParseRate reads a rate in the form of a file, "100/minute" or "unlimited": tokens, 1 to
// [limiter.MaxTokens], and a period. It returns the limit of that rate, without a name. Its error
// says how to write a rate.
func ParseRate(s string) (limiter.Limit, error) {
	if s == "unlimited" {
		return limiter.Unlimited(""), nil
	}
	count, unit, ok := strings.Cut(s, "/")
	if !ok {
		if _, number := yamlcfg.ParseInteger(s); number {
			return limiter.Limit{}, fmt.Errorf("%w: a rate needs a period: write %s/minute", errRate, s)
		}
		return limiter.Limit{}, fmt.Errorf("%w, not %q", errRate, s)
	}
	period, err := parsePeriod(unit)
	if err != nil {
		return limiter.Limit{}, err
	}
	tokens, ok := yamlcfg.ParseInteger(count)
	if !ok || tokens < 1 || tokens > limiter.MaxTokens {
		return limiter.Limit{}, fmt.Errorf("a rate must begin with a whole number of tokens, 1 to %d, not %q", int64(limiter.MaxTokens), count)
	}
	return limiter.Custom("", tokens, tokens, period), nil
}

func parsePeriod(s string) (time.Duration, error) {
	units := map[string]time.Duration{"second": time.Second, "minute": time.Minute, "hour": time.Hour, "day": day, "week": 7 * day}
	if period, ok := units[s]; ok {
		return period, nil
	}
	if s == "month" || s == "year" {
		return 0, fmt.Errorf("a %s has no fixed length: write hours, such as 720h for 30 days", s)
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		const rule = "a period must be second, minute, hour, day, week or a duration such as 30s or 2h30m"
		return 0, fmt.Errorf("%s, not %q%s", rule, s, periodHint(s))
	}
	if d < minPeriod || d > maxPeriod || d%time.Millisecond != 0 {
		return 0, fmt.Errorf("a period must be 1s to %s (366 days), in whole milliseconds, not %s", yamlcfg.ShortDuration(maxPeriod), s)
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
	return yamlcfg.DidYouMean(s, []string{"second", "minute", "hour", "day", "week"})
}
