package cli

import (
	"fmt"
	"time"
)

// parseUsageTime reads a time of RFC 3339, a day (2026-11-22) or month (2026-11) of UTC, which is its
// beginning, or how long ago it is (1h30m). "" is the zero time.
func parseUsageTime(now time.Time, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, form := range []string{time.RFC3339, time.DateOnly, "2006-01"} {
		if at, err := time.Parse(form, text); err == nil {
			return at, nil
		}
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return now.Add(-ago), nil
	}
	return time.Time{}, fmt.Errorf("%.100q is no time: it is such as 2026-11-22T09:00:00Z, 2026-11-22, 2026-11, or 1h for an hour ago", text)
}

// parseUsageTimes reads the values of the flags --from and --to, each as parseUsageTime does.
func parseUsageTimes(now time.Time, from, to string) (first, last time.Time, err error) {
	if first, err = parseUsageTime(now, from); err != nil {
		return first, last, fmt.Errorf("--from: %w", err)
	}
	if last, err = parseUsageTime(now, to); err != nil {
		return first, last, fmt.Errorf("--to: %w", err)
	}
	return first, last, nil
}
