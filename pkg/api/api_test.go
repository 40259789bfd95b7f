package api_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/ratelimit/ratelimit/pkg/api"
)

// Every name is equal after a round trip through its JSON, which is UTF-8.
func TestNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := api.Name(rapid.SliceOf(rapid.Byte()).Draw(t, "name"))
		text, err := json.Marshal(want)
		var got api.Name
		if err == nil {
			err = json.Unmarshal(text, &got)
		}
		if err != nil || got != want || !utf8.Valid(text) {
			t.Fatalf("%q became %s and then %q: %v", string(want), text, string(got), err)
		}
	})
	seen := map[string]api.Name{}
	for _, name := range []api.Name{"", `""`, "\xff", `"\xff"`, `"\"\\xff\""`, "a\n", `"a\n"`, "a", `"a"`} {
		if other, ok := seen[name.String()]; ok {
			t.Errorf("%q and %q are both shown as %s", string(name), string(other), name)
		}
		seen[name.String()] = name
	}
	for _, text := range []string{`1`, `{}`, `{"base64":"*"}`, `{"base64":"","x":1}`, `["a"]`} {
		var n api.Name
		if err := json.Unmarshal([]byte(text), &n); err == nil {
			t.Errorf("%s is the name %q", text, string(n))
		}
	}
}

// Every limit is equal after a round trip through its text and through its JSON.
func TestLimits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := api.Limit{Rate: rapid.SampledFrom([]string{"1/minute", "5/30s", "unlimited", "2000000/month calendar Europe/Berlin from 15", "5 in flight 10m"}).Draw(t, "rate"), Burst: rapid.Int64Range(0, 1<<62).Draw(t, "burst")}
		if rapid.Bool().Draw(t, "debt") {
			debt := rapid.Int64Range(0, 1<<62).Draw(t, "max_debt")
			want.MaxDebt = &debt
		}
		if windows := rapid.SliceOfDistinct(rapid.SampledFrom([]api.Window{api.Hour, api.Day, api.Month}), rapid.ID[api.Window]).Draw(t, "budget"); len(windows) > 0 {
			want.Budget = make(map[api.Window]int64)
			for _, w := range windows {
				want.Budget[w] = rapid.Int64Range(1, 1<<62).Draw(t, "tokens")
			}
		}
		parsed, err := api.ParseLimit(want.String())
		if err != nil || parsed.String() != want.String() {
			t.Fatalf("%s became %s: %v", want, parsed, err)
		}
		text, err := json.Marshal(want)
		var got api.Limit
		if err == nil {
			err = json.Unmarshal(text, &got)
		}
		if err != nil || got.String() != want.String() {
			t.Fatalf("%s became %s and then %s: %v", want, text, got, err)
		}
	})
	for _, text := range []string{
		"", "1/minute burst", "1/minute burst 0", "1/minute burst -1", "1/minute burst 1 burst 2", "1/minute max_debt 1 max_debt 1", "1/minute brust 2", "burst 2", "1/minute budget", "1/minute budget 5",
		"1/minute budget 0/day", "1/minute budget 5/week", "1/minute budget 5/day budget 6/day", "1/minute budget x/day", "1/minute burst 5/day",
		"1/minute burst 1__0", "1/minute burst 1_", "1/minute burst _1", "1/minute budget 5__0/day",
	} {
		if l, err := api.ParseLimit(text); err == nil {
			t.Errorf("%q is the limit %+v", text, l)
		}
	}
	for text, want := range map[string]string{"5 EUR/month": `"5 EUR" is no amount of money`, "5/day budget 5 EUR/month": `"5 EUR" is no amount of money`} {
		if _, err := api.ParseLimit(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %s", text, err, want)
		}
	}
	if _, err := api.ParseLimit("1/minute budget 50/day deny"); err == nil || !strings.Contains(err.Error(), `"50/day calendar"`) {
		t.Errorf("a budget that denies: %v; want one that names the quota", err)
	}
}

func ExampleParseLimit() {
	l, err := api.ParseLimit("40000/minute burst 60000")
	fmt.Println(l.Rate, l.Burst, err)
	// Output: 40000/minute 60000 <nil>
}

// Every number of tokens is equal after a round trip through its text, and no other text is a
// number of tokens.
func TestTokens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := api.Tokens(rapid.Int64Range(-1<<61, 1<<61).Draw(t, "tokens"))
		if got, err := api.ParseTokens(want.String()); err != nil || got != want {
			t.Fatalf("%d became %s and then %d: %v", int64(want), want, int64(got), err)
		}
	})
	for _, text := range []string{"", "-", ".", "1.", ".5", "1.0005", "1e3", "+1", "0x1", "1_0", "99999999999999999999", `"1"`, "1,5"} {
		if n, err := api.ParseTokens(text); err == nil {
			t.Errorf("%q is %s", text, n)
		}
	}
}

// Dollars of a limit are tokens, in each of its parts, as text and in JSON.
func TestDollars(t *testing.T) {
	for text, want := range map[string]string{
		"5 USD/hour":                      "5000000/hour",
		"50 USD/month calendar":           "50000000/month calendar",
		"1_000.25 USD/day burst 2 USD":    "1000250000/day burst 2000000",
		"5 USD/hour budget 100 USD/month": "5000000/hour budget 100000000/month",
		"5/day calendar UTC from 15":      "5/day calendar UTC from 15",
		"5/minute max_debt 0.000001 USD":  "5/minute max_debt 1",
	} {
		got, err := api.ParseLimit(text)
		if err != nil || got.String() != want {
			t.Errorf("%q: got %q, %v, want %q", text, got, err, want)
		}
		var read api.Limit
		if err := json.Unmarshal([]byte(strconv.Quote(text)), &read); err != nil || read.String() != want {
			t.Errorf("%q in JSON: got %q, %v, want %q", text, read, err, want)
		}
	}
	for _, text := range []string{"5 USDT/hour", "1.1234567 USD/hour", "5/minute burst 99999999999999 USD", "1__0 USD/hour", "1_ USD/hour", ".1 USD/hour"} {
		if got, err := api.ParseLimit(text); err == nil {
			t.Errorf("%q is read as %v", text, got)
		}
	}
}
