package config

import (
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
		{"5/30s", 5, 30 * time.Second},
		{"100/2h30m", 100, 150 * time.Minute},
		{"7/1500ms", 7, 1500 * time.Millisecond},
		{"1000000000000/8784h", 1e12, 366 * 24 * time.Hour},
	} {
		tokens, period, err := parseRate(test.text)
		if tokens != test.tokens || period != test.period || err != nil {
			t.Errorf("parseRate(%q) = %d, %v, %v; want %d, %v", test.text, tokens, period, err, test.tokens, test.period)
		}
	}
	for _, text := range []string{
		"", "/", "1/", "/minute", "1", "1/2/3", "0/minute", "01/minute", "+1/minute", "-1/minute", "1_/minute", "_1/minute",
		"1.0/minute", "1000000000001/minute", "99999999999999999999/minute", "1/MINUTE", "1/-1s", "1/999ms", "1/8785h", "1/0", "1/30",
	} {
		if tokens, period, err := parseRate(text); err == nil {
			t.Errorf("parseRate(%q) = %d, %v; want an error", text, tokens, period)
		}
	}
}

func TestParseThousandths(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "1": 1000, "2.5": 2500, "0.001": 1, "0.25": 250, "1_000.125": 1_000_125, "1000000000000": 1e15, "1.000": 1000,
	} {
		if got, ok := parseThousandths(text); got != want || !ok {
			t.Errorf("parseThousandths(%q) = %d, %t; want %d", text, got, ok, want)
		}
		if got, ok := parseThousandths(decimal(want)); got != want || !ok {
			t.Errorf("decimal(%d) is %q, which is %d, %t", want, decimal(want), got, ok)
		}
	}
	for _, text := range []string{"", ".", ".5", "1.", "1.0001", "1e3", "-1", "+1", "0x1", "01", "1.5_0", "1..5", "1000000000001", ".inf"} {
		if got, ok := parseThousandths(text); ok {
			t.Errorf("parseThousandths(%q) = %d; want none", text, got)
		}
	}
}

func TestDidYouMean(t *testing.T) {
	for text, want := range map[string]string{"rat": `; did you mean "rate"?`, "limit": ""} {
		if got := didYouMean(text, []string{"namespace", "rate"}); got != want {
			t.Errorf("didYouMean(%q) = %q, want %q", text, got, want)
		}
	}
}
