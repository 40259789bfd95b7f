package money_test

import (
	"testing"

	"github.com/ratelimit/ratelimit/pkg/money"
)

// Numbers of five digits and more are grouped, at the begin of words alone. Names stay as they are.
// Limits of money are in dollars.
func TestAmounts(t *testing.T) {
	for limit, texts := range map[string]map[string]string{
		"rpm": {
			"":                           "",
			"-":                          "-",
			"9999":                       "9999",
			"10000":                      "10_000",
			"-1234567.125":               "-1_234_567.125",
			"2000000/month":              "2_000_000/month",
			"400000/minute burst 600000": "400_000/minute burst 600_000",
			"12345 in flight 10m":        "12_345 in flight 10m",
			"200/day 50000000/month":     "200/day 50_000_000/month",
			"10000/day calendar Etc/GMT+10000 from 15": "10_000/day calendar Etc/GMT+10000 from 15",
			"unlimited": "unlimited",
		},
		"usd": {
			"":                                 "",
			"-":                                "-",
			"50000000/month":                   "50 USD/month",
			"1500000/minute burst 600000":      "1.50 USD/minute burst 0.60 USD",
			"-1234567.125":                     "-1.234567125 USD",
			"200000/day 50000000000/month":     "0.20 USD/day 50_000 USD/month",
			"5 in flight 10m":                  "5 in flight 10m",
			"10000/month calendar UTC from 15": "0.01 USD/month calendar UTC from 15",
			"unlimited":                        "unlimited",
		},
	} {
		for text, want := range texts {
			if got := money.Amounts(limit, text); got != want {
				t.Errorf("%s %q: got %q, want %q", limit, text, got, want)
			}
		}
	}
}

// An amount has one unit.
func TestCounted(t *testing.T) {
	for want, got := range map[string]string{
		"1 to 1_000_000_000_000 tokens": money.Bounds("rpm", 1, 1e12), "0.000001 USD to 1_000_000 USD": money.Bounds("usd", 1, 1e12),
		"0.5 tokens": money.Counted("rpm", "0.5"), "25_000 tokens": money.Counted("", "25000"), "12.50 USD": money.Counted("usd.month", "12500000"),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
