package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ratelimit/ratelimit/internal/cli/manifest"
	"github.com/ratelimit/ratelimit/pkg/api"
)

// exportOf returns the YAML of some limits of the system.
func exportOf(t interface{ Fatal(...any) }, limits map[string]api.Limit) string {
	var out bytes.Buffer
	e := exported{Items: []any{api.Limits{Level: api.LevelSystem, Limits: limits}}}
	if err := e.writeYAML(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// Amounts of a manifest have the digits and the unit with which people write them.
func TestExportWritesAmountsAsPeopleDo(t *testing.T) {
	debt := int64(25_000_000)
	got := exportOf(t, map[string]api.Limit{
		"rpm": {Rate: "100/minute"}, "tpd": {Rate: "2000000/day", Burst: 4_000_000, MaxDebt: &debt, Budget: map[api.Window]int64{api.Month: 50_000_000}},
		"usd": {Rate: "700000000/hour", Burst: 70_500_000, Budget: map[api.Window]int64{api.Day: 12_345_000_000}}, "usd.month": {Rate: "50000000/month calendar Europe/Berlin from 15"},
	})
	for _, want := range []string{
		"rpm: 100/minute\n", "rate: 2_000_000/day\n", "burst: 4_000_000\n", "max_debt: 25_000_000\n", "month: 50_000_000\n",
		"rate: 700 USD/hour\n", "burst: 70.50 USD\n", "day: 12_345 USD\n", "usd.month: 50 USD/month calendar Europe/Berlin from 15\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

// What export writes, apply reads as the same limits.
func TestExportIsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amount := rapid.Int64Range(1, 1e12)
		limits := make(map[string]api.Limit)
		for _, name := range []string{"rpm", "usd", "usd.month", "team_usd"} {
			l := api.Limit{Rate: rapid.SampledFrom([]string{"700000000/hour", "100/minute", "1000000000000/day", "123456/5s"}).Draw(t, "rate")}
			if name != "usd.month" && rapid.Bool().Draw(t, "more") {
				debt := amount.Draw(t, "debt")
				l.Burst, l.MaxDebt = amount.Draw(t, "burst"), &debt
				l.Budget = map[api.Window]int64{api.Day: amount.Draw(t, "day"), api.Month: amount.Draw(t, "month")}
			}
			if name == "usd.month" {
				l.Rate = "2000000/month calendar Europe/Berlin from 15"
			}
			limits[name] = l
		}
		read := func(text string) map[string]api.Limit {
			m, problems := manifest.Parse([]manifest.Source{{Name: "m.yaml", Data: []byte(text)}})
			if len(problems) > 0 || len(m.Records) != 1 {
				t.Fatalf("%v\n%s", problems, text)
			}
			return m.Records[0].Limits.Limits
		}
		plain, err := json.Marshal(exported{Items: []any{api.Limits{Level: api.LevelSystem, Limits: limits}}})
		if err != nil {
			t.Fatal(err)
		}
		text := exportOf(t, limits)
		if diff := cmp.Diff(read(string(plain)), read(text)); diff != "" {
			t.Fatalf("(-of JSON +of YAML):\n%s\n%s", diff, text)
		}
	})
}
