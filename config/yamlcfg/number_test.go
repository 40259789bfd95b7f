package yamlcfg

import "testing"

func TestParseThousandths(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "1": 1000, "2.5": 2500, "0.001": 1, "0.25": 250, "1_000.125": 1_000_125, "1000000000000": 1e15, "1.000": 1000,
	} {
		if got, ok := parseThousandths(text); got != want || !ok {
			t.Errorf("parseThousandths(%q) = %d, %t; want %d", text, got, ok, want)
		}
		if got, ok := parseThousandths(Decimal(want)); got != want || !ok {
			t.Errorf("decimal(%d) is %q, which is %d, %t", want, Decimal(want), got, ok)
		}
	}
	for _, text := range []string{"", ".", ".5", "1.", "1.0001", "1e3", "-1", "+1", "0x1", "01", "1.5_0", "1__0", "1..5", "1000000000001", ".inf"} {
		if got, ok := parseThousandths(text); ok {
			t.Errorf("parseThousandths(%q) = %d; want none", text, got)
		}
	}
}

func TestDidYouMean(t *testing.T) {
	for text, want := range map[string]string{"rat": `; did you mean "rate"?`, "limit": ""} {
		if got := DidYouMean(text, []string{"namespace", "rate"}); got != want {
			t.Errorf("didYouMean(%q) = %q, want %q", text, got, want)
		}
	}
}
