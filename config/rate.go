package config

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ratelimit/ratelimit/config/yamlcfg"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/money"
)

const (
	minPeriod = time.Second
	maxPeriod = 366 * day
)

var errRate = errors.New(`must be a rate, such as 100/minute, 5/30s or 1000/day, or unlimited`)

// ParseRate reads a rate in the form of a file, "100/minute", "50 USD/month calendar", "5 in flight 10m"
// or "unlimited": tokens, 0 to [limiter.MaxTokens], and a period, a calendar or a longest time. It returns
// the limit of that rate, without a name. Its error says how to write a rate.
func ParseRate(s string) (limiter.Limit, error) {
	l, err := parseRate(s)
	return l, money.Explain(s, err)
}

func parseRate(s string) (limiter.Limit, error) {
	if s == "unlimited" {
		return limiter.Unlimited(""), nil
	}
	if err := besideRate(s); err != nil {
		return limiter.Limit{}, err
	}
	if count, longest, ok := strings.Cut(s+" ", " in flight "); ok {
		return parseInFlight(count, "in flight "+strings.TrimSpace(longest))
	}
	if strings.Contains(s, " /") || strings.Contains(s, "/ ") {
		tidy := aroundSlash.ReplaceAllString(s, "/")
		if l, err := parseRate(tidy); err == nil {
			return l, fmt.Errorf("a rate has no space beside its slash: write %s", tidy)
		}
	}
	count, unit, ok := strings.Cut(s, "/")
	if !ok {
		if _, number := yamlcfg.ParseInteger(s); number {
			return limiter.Limit{}, fmt.Errorf("%w: a rate needs a period: write %s/minute", errRate, s)
		}
		return limiter.Limit{}, fmt.Errorf("%w, not %q", errRate, s)
	}
	if strings.Contains(unit, " ") {
		return parseQuota(count, unit)
	}
	period, err := parsePeriod(unit)
	if err != nil {
		return limiter.Limit{}, err
	}
	if tokens, ok := thousands(count); ok {
		return limiter.Limit{}, fmt.Errorf("a number of tokens has no letter behind it: write %s/%s", money.Amount("", tokens), unit)
	}
	tokens, ok := yamlcfg.ParseTokens(count)
	if !ok || tokens < 0 || tokens > limiter.MaxTokens {
		return limiter.Limit{}, fmt.Errorf("a rate must begin with a whole number of tokens, 0 to %s, or dollars, such as 5 USD/hour, not %q%s", mostTokens(), count, yamlcfg.Grouping(count))
	}
	return limiter.Custom("", tokens, tokens, period), nil
}

// aroundSlash is the slash of a rate with spaces beside it.
var aroundSlash = regexp.MustCompile(` */ *`)

// thousands reads a number with a letter for a thousand or a million behind it, which no number of a file has.
func thousands(s string) (int64, bool) {
	number, letter := strings.TrimRight(s, "kKM"), int64(1000)
	switch s[len(number):] {
	case "k", "K":
	case "M":
		letter *= letter
	default:
		return 0, false
	}
	n, ok := yamlcfg.ParseInteger(number)
	return n * letter, ok && n >= 1 && n <= limiter.MaxTokens/letter
}

// besideRate refuses a rate that has a part which stands beside it, as the text of a command has.
func besideRate(s string) error {
	fields := strings.Fields(s)
	i := slices.IndexFunc(fields, func(f string) bool { return f == "burst" || f == "max_debt" || f == "budget" })
	if i < 1 {
		return nil
	}
	keys := []string{"rate: " + strings.Join(fields[:i], " ")}
	for ; i+1 < len(fields); i += 2 {
		if tokens, window, ok := strings.Cut(fields[i+1], "/"); ok {
			fields[i+1] = "{" + window + ": " + tokens + "}"
		}
		keys = append(keys, fields[i]+": "+fields[i+1])
	}
	return fmt.Errorf("a rate stands apart from burst, max_debt and budget: write {%s}, not %q", strings.Join(keys, ", "), s)
}

// mostTokens is [limiter.MaxTokens] as people write it.
func mostTokens() string { return money.Amount("", limiter.MaxTokens) }

// periods are the names of periods, as people write them.
func periods() map[string]time.Duration {
	return map[string]time.Duration{
		"second": time.Second, "seconds": time.Second, "sec": time.Second, "s": time.Second,
		"minute": time.Minute, "minutes": time.Minute, "min": time.Minute, "m": time.Minute,
		"hour": time.Hour, "hours": time.Hour, "h": time.Hour,
		"day": day, "days": day, "d": day,
		"week": 7 * day, "weeks": 7 * day, "w": 7 * day,
	}
}

// parsePeriod reads a period: a name with a number before it or without, or a duration.
func parsePeriod(s string) (time.Duration, error) {
	name := strings.TrimLeft(s, "0123456789")
	switch strings.TrimSuffix(name, "s") {
	case "month", "year", "mo", "y":
		return 0, fmt.Errorf("a %s has no fixed length: write days, such as 30d, or a quota by the calendar, such as 1000/month calendar", name)
	}
	d, ok := periods()[name]
	if ok && name != s {
		n, number := yamlcfg.ParseInteger(s[:len(s)-len(name)])
		if !number || n > int64(maxPeriod/d) {
			return 0, errPeriod(s)
		}
		d *= time.Duration(n)
	}
	if !ok {
		var err error
		if d, err = time.ParseDuration(s); err != nil {
			const rule = "a period must be second, minute, hour, day, week, or some of them, such as 30s, 2h30m or 7d"
			return 0, fmt.Errorf("%s, not %q%s", rule, s, yamlcfg.DidYouMean(s, []string{"second", "minute", "hour", "day", "week"}))
		}
	}
	if d < minPeriod || d > maxPeriod || d%time.Millisecond != 0 {
		return 0, errPeriod(s)
	}
	return d, nil
}

func errPeriod(s string) error {
	return fmt.Errorf("a period must be 1s to %s (366 days), in whole milliseconds, not %s", yamlcfg.ShortDuration(maxPeriod), s)
}
