package config

import (
	"strings"
	"testing"
	"time"
)

func TestParseRate(t *testing.T) {
	for _, test := range []struct {
		text   string
		tokens int64
		period time.Duration
	}{
		{"100/second", 100, time.Second},
		{"1/minute", 1, time.Minute},
		{"2_000_000/hour", 2_000_000, time.Hour},
		{"1000/day", 1000, 24 * time.Hour},
		{"3/week", 3, 168 * time.Hour},
		{"10/s", 10, time.Second},
		{"0/minute", 0, time.Minute},
		{"100/min", 100, time.Minute},
		{"5/7d", 5, 168 * time.Hour},
		{"5/2weeks", 5, 336 * time.Hour},
		{"6/366d", 6, 366 * 24 * time.Hour},
		{"5/30s", 5, 30 * time.Second},
		{"100/2h30m", 100, 150 * time.Minute},
		{"7/1500ms", 7, 1500 * time.Millisecond},
		{"1000000000000/8784h", 1e12, 366 * 24 * time.Hour},
		{"5 USD/hour", 5_000_000, time.Hour},
		{"0.000001 USD/hour", 1, time.Hour},
		{"1_000.25 USD/day", 1_000_250_000, 24 * time.Hour},
		{"1_000_000 USD/week", 1e12, 168 * time.Hour},
	} {
		got, err := ParseRate(test.text)
		if got.RefillAmount != test.tokens || got.Capacity != test.tokens || got.RefillPeriod != test.period || err != nil {
			t.Errorf("ParseRate(%q) = %v, %v; want %d, %v", test.text, got, err, test.tokens, test.period)
		}
	}
	for _, text := range []string{
		"", "/", "1/", "/minute", "1", "1/2/3", "01/minute", "+1/minute", "-1/minute", "1_/minute", "_1/minute", "1__0/minute",
		"1.0/minute", "1000000000001/minute", "99999999999999999999/minute", "1/MINUTE", "1/-1s", "1/999ms", "1/8785h", "1/0", "1/30", "1/0d", "1/367d", "1/ 7d", "1/7 d", "1/-7d", "1/99999999999999999999d", "1/mo", "1/12months",
		"USD/hour", "5USD/hour", "5. USD/hour", ".5 USD/hour", "1.0000001 USD/hour", "1_000_000.000001 USD/hour", "-1 USD/hour", "5  USD/hour", "9999999999999 USD/hour",
	} {
		if got, err := ParseRate(text); err == nil {
			t.Errorf("ParseRate(%q) = %v; want an error", text, got)
		}
	}
	for text, want := range map[string]string{
		"100 / minute":        "write 100/minute",
		"5 USD/ hour":         "write 5 USD/hour",
		"100 /month calendar": "write 100/month calendar",
		"10k/min":             "write 10_000/min",
		"2M/day":              "write 2_000_000/day",
		"9999999999M/day":     "a rate must begin with a whole number of tokens",
		"0k/day":              "a rate must begin with a whole number of tokens",
	} {
		if got, err := ParseRate(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseRate(%q) = %v, %v; want %q", text, got, err, want)
		}
	}
	const foreign = `"5 EUR" is no amount of money: it is in US dollars and written like 5 USD`
	for _, text := range []string{"5 EUR/month", "5 EUR/day", "5 EUR/month calendar"} {
		if _, err := ParseRate(text); err == nil || err.Error() != foreign {
			t.Errorf("ParseRate(%q): %v; want %s", text, err, foreign)
		}
	}
}
