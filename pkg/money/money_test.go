package money_test

import (
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ratelimit/ratelimit/pkg/money"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]int64{
		"0 USD": 0, "12.50 USD": 12_500_000, "0.000001 USD": 1, "1_000 USD": 1_000_000_000, "1000000000000 USD": 1e18,
	} {
		if got, ok := money.Parse(text); got != want || !ok {
			t.Errorf("Parse(%q) = %d, %t; want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "12", "12.50", " USD", ".5 USD", "5. USD", "1.0000001 USD", "-1 USD", "_1 USD", "1_ USD", "1__0 USD", "1_.5 USD", "01 USD", "1e3 USD", "5 usd", "5 EUR", "1000000000001 USD", "1.-5 USD"} {
		if got, ok := money.Parse(text); ok {
			t.Errorf("Parse(%q) = %d; want none", text, got)
		}
	}
}

// Another currency or form of dollars is told apart from other mistakes.
func TestForeign(t *testing.T) {
	for text, amount := range map[string]string{
		"5 EUR/month": `"5 EUR"`, "5USD/day": `"5USD"`, "5 usd": `"5 usd"`, "1_000.50 GBP": "written like 1_000.50 USD", "5 USD/day budget 50 EUR/month": `"50 EUR"`,
		"5 USD/day": "", "100/minute": "", "5 in flight 10m": "", "100/5MIN": "", "100/month calendar EST from 15": "", "": "",
	} {
		if got := money.Foreign(text); !strings.Contains(got, amount) || (got == "") != (amount == "") {
			t.Errorf("Foreign(%q) = %q; want one with %s", text, got, amount)
		}
	}
}

func TestText(t *testing.T) {
	for tokens, want := range map[string]string{
		"0": "0 USD", "1": "0.000001 USD", "50000000": "50 USD", "12500000": "12.50 USD", "-1234567.125": "-1.234567125 USD", "0.5": "0.0000005 USD", "-": "-", "": "", "unlimited": "unlimited",
	} {
		if got := money.Text(tokens); got != want {
			t.Errorf("Text(%q) = %q, want %q", tokens, got, want)
		}
	}
}

func TestDigits(t *testing.T) {
	for text, want := range map[string]string{"0": "0", "100": "100", "1_000": "1000", "1_0_0": "100", "25_000_000": "25000000"} {
		if got, ok := money.Digits(text); got != want || !ok {
			t.Errorf("Digits(%q) = %q, %t; want %q", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "_", "1__0", "_1", "1_", "1.0", "-1", "1_a", "1 0", "１"} {
		if got, ok := money.Digits(text); ok {
			t.Errorf("Digits(%q) = %q; want none", text, got)
		}
	}
}

// What is written is read back.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.Int64Range(0, 1e18).Draw(t, "tokens")
		if got, ok := money.Parse(money.Text(strconv.FormatInt(want, 10))); got != want || !ok {
			t.Fatalf("got %d, %t, want %d", got, ok, want)
		}
	})
}

func TestIs(t *testing.T) {
	for limit, want := range map[string]bool{
		"usd": true, "usd.month": true, "usd.shadow": true, "team_usd": true, "team-usd.day": true, "rpm": false, "usdc": false, "tusd": false, "a.usd": false, "": false,
	} {
		if money.Is(limit) != want {
			t.Errorf("Is(%q) = %t", limit, !want)
		}
	}
}
