package config

import (
	"fmt"
	"strings"
	"time"

	"github.com/ratelimit/ratelimit/config/yamlcfg"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// quota is the keys of a limit that is a quota, or one in flight.
type quota struct {
	text, zone, first string
	resets            bool
	inFlight          int64
	maxTime           time.Duration
}

func (q *quota) keys() []yamlcfg.Key {
	return []yamlcfg.Key{
		key("quota", "tokens in each `hour`, `day`, `week` or `month` of the [calendar](#quotas-by-the-calendar), in place of `rate`", yamlcfg.Name(&q.text)),
		key("resets", "when a quota starts anew", yamlcfg.OneOf(&q.resets, yamlcfg.As("calendar", true))),
		key("zone", "time zone of a quota, such as `Europe/Berlin`", yamlcfg.Name(&q.zone)),
		key("first_day", "first day of a quota's week, `monday` to `sunday`, or of its month, 1 to 31; shorter months begin on their last day", yamlcfg.Literal(&q.first)),
		key("in_flight", "most requests [in flight](#requests-in-flight), in place of `rate`", yamlcfg.Integer(&q.inFlight, 1, limiter.MaxTokens)),
		key("max_time", "longest time of a request [in flight](#requests-in-flight), in whole seconds", yamlcfg.Duration(&q.maxTime, limiter.MinInFlight, limiter.MaxInFlight)),
	}
}

// finish reads the quota into l, which may have a rate. It reports whether there is no mistake.
func (q *quota) finish(n yamlcfg.Node, l *limiter.Limit) bool {
	if q.inFlight > 0 || q.maxTime > 0 {
		return q.finishInFlight(n, l)
	}
	switch {
	case q.text == "" && (q.resets || q.zone != "" || q.first != ""):
		n.Failf("has resets, zone or first_day without quota: these belong to {quota: 2_000_000/month, resets: calendar, zone: Europe/Berlin}")
		return false
	case q.text == "":
		return true
	case l.RefillPeriod != 0 || l.Unlimited:
		n.Failf("has rate and quota: keep one; two limits can have both")
		return false
	}
	if strings.Contains(q.first, " ") {
		n.Failf("has the first_day %q; it must be one day, monday to sunday of a week, or 1 to 31 of a month", q.first)
		return false
	}
	text := []string{q.text, "calendar"}
	if q.zone != "" {
		text = append(text, q.zone)
	}
	if q.first != "" {
		text = append(text, "from", q.first)
	}
	found, err := ParseRate(strings.Join(text, " "))
	if err != nil {
		n.Failf("%v", err)
		return false
	}
	found.MaxDebt = l.MaxDebt
	*l = found
	return true
}

// finishInFlight is finish of a limit in flight.
func (q *quota) finishInFlight(n yamlcfg.Node, l *limiter.Limit) bool {
	switch {
	case q.inFlight == 0 || q.maxTime == 0:
		n.Failf("needs both in_flight and max_time, such as {in_flight: 5, max_time: 10m}")
	case *q != quota{inFlight: q.inFlight, maxTime: q.maxTime}:
		n.Failf("has in_flight and quota, resets, zone or first_day: keep one kind; two limits can have both")
	case l.RefillPeriod != 0 || l.Unlimited:
		n.Failf("has rate and in_flight: keep one; two limits can have both")
	case q.maxTime%time.Second != 0:
		n.Failf("has a max_time of %v; it must be whole seconds", q.maxTime)
	default:
		*l = limiter.Concurrent("", q.inFlight, q.maxTime)
		return true
	}
	return false
}

// parseInFlight reads "5 in flight 10m", of which the calendar is "in flight 10m".
func parseInFlight(tokens, calendar string) (limiter.Limit, error) {
	n, ok := yamlcfg.ParseInteger(tokens)
	if !ok || n < 1 || n > limiter.MaxTokens {
		return limiter.Limit{}, fmt.Errorf("a limit in flight must begin with a whole number, 1 to %s, not %q%s", mostTokens(), tokens, yamlcfg.Grouping(tokens))
	}
	of, err := limiter.ParseCalendar(calendar)
	if err != nil {
		return limiter.Limit{}, fmt.Errorf("%s", reason(err))
	}
	return limiter.Concurrent("", n, of.MaxTime), nil
}

// parseQuota reads "2000000/month calendar Europe/Berlin from 15", of which tokens stand before the slash.
func parseQuota(tokens, calendar string) (limiter.Limit, error) {
	n, ok := yamlcfg.ParseTokens(tokens)
	if !ok || n < 1 || n > limiter.MaxTokens {
		return limiter.Limit{}, fmt.Errorf("a quota must begin with a whole number of tokens, 1 to %s, or dollars, such as 50 USD/month, not %q%s", mostTokens(), tokens, yamlcfg.Grouping(tokens))
	}
	of, err := limiter.ParseCalendar(calendar)
	if err != nil {
		return limiter.Limit{}, fmt.Errorf("%s", reason(err))
	}
	return limiter.Quota("", n, of), nil
}
