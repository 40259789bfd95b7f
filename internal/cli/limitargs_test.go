package cli

import "testing"

// Dollars in an argument are tokens, in each part of the limit. Other text stays for the limit to refuse.
func TestDollarsOfArguments(t *testing.T) {
	for text, want := range map[string]string{
		"5 USD/hour":                        "5000000/hour",
		"50 USD/month calendar":             "50000000/month calendar",
		"1_000.25 USD/day burst 2 USD":      "1000250000/day burst 2000000",
		"5 USD/hour budget 100 USD/month":   "5000000/hour budget 100000000/month",
		"5/minute":                          "5/minute",
		"5 USDT/hour":                       "5 USDT/hour",
		"1.1234567 USD/hour":                "1.1234567 USD/hour",
		"5/day calendar USD from 15":        "5/day calendar USD from 15",
		"5/minute max_debt 0.000001 USD":    "5/minute max_debt 1",
		"5/minute burst 99999999999999 USD": "5/minute burst 99999999999999 USD",
	} {
		if got := inTokens(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
