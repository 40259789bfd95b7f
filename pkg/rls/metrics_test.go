package rls_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/ratelimit/ratelimit/pkg/rls"
)

// series returns the value of every counter that is not 0, by its name and labels.
func series(tb testing.TB, r prometheus.Gatherer) map[string]float64 {
	tb.Helper()
	all := allSeries(tb, r)
	maps.DeleteFunc(all, func(_ string, value float64) bool { return value == 0 })
	return all
}

// allSeries returns the value of every counter, by its name and labels.
func allSeries(tb testing.TB, r prometheus.Gatherer) map[string]float64 {
	tb.Helper()
	families, err := r.Gather()
	if err != nil {
		tb.Fatal(err)
	}
	all := make(map[string]float64)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			labels := make([]string, 0, len(m.GetLabel()))
			for _, l := range m.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			all[f.GetName()+"{"+strings.Join(labels, ",")+"}"] = m.GetCounter().GetValue()
		}
	}
	return all
}

func TestMetrics(t *testing.T) {
	e := newEnv(t, nil)
	calls := []struct {
		times int
		ask   string
	}{
		{12, descriptor1(``, "api_key", "a", "model", "m")},
		{1, descriptor1(`"hitsAddend":"11"`, "api_key", "b", "model", "m")},
		{1, fmt.Sprintf(`{"domain":"llm","descriptors":[%s,%s]}`, descriptorJSON(``, "api_key", "c", "model", "m"), descriptorJSON(``, "ghost", "g"))},
		{2, descriptor1(`"hitsAddend":"5"`, "api_key", "a", "model", "m", "meter", "tokens")},
		{1, descriptor1(`"hitsAddend":"5","isNegativeHits":true`, "api_key", "a", "model", "m", "meter", "tokens")},
		{3, descriptor1(``, "trial", "x")},
		{1, descriptor1(``, "tier", "free")},
		{1, descriptor1(``, "nobody", "knows")},
		{1, `{"domain":"elsewhere","descriptors":[{}]}`},
		{1, `{"domain":"closed","descriptors":[{}]}`},
	}
	for _, c := range calls {
		for range c.times {
			if _, err := e.ask(t, c.ask); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, bad := range []string{`{}`, `{"domain":"llm"}`, descriptor1(`"limit":{}`, "k", "v")} {
		if _, err := e.ask(t, bad); err == nil {
			t.Fatalf("%s: got no error", bad)
		}
	}
	want := map[string]float64{
		`ratelimit_decisions_total{domain="llm",result="allowed",rule="requests"}`:                         10,
		`ratelimit_decisions_total{domain="llm",result="denied",rule="requests"}`:                          3,
		`ratelimit_decisions_total{domain="llm",result="withheld",rule="requests"}`:                        1,
		`ratelimit_decisions_total{domain="llm",result="denied",rule="ghost"}`:                             1,
		`ratelimit_decisions_total{domain="llm",result="allowed",rule="tried"}`:                            3,
		`ratelimit_decisions_total{domain="llm",result="shadow_allowed",rule="trial"}`:                     2,
		`ratelimit_decisions_total{domain="llm",result="shadow_denied",rule="trial"}`:                      1,
		`ratelimit_decisions_total{domain="llm",result="unlimited",rule="free"}`:                           1,
		`ratelimit_decisions_total{domain="llm",result="unmatched",rule=""}`:                               1,
		`ratelimit_decisions_total{domain="",result="unmatched",rule=""}`:                                  1,
		`ratelimit_decisions_total{domain="closed",result="denied",rule=""}`:                               1,
		`ratelimit_denials_total{domain="llm",limit="rpm",reason="limit_exhausted",rule="requests"}`:       2,
		`ratelimit_denials_total{domain="llm",limit="rpm",reason="exceeds_capacity",rule="requests"}`:      1,
		`ratelimit_denials_total{domain="llm",limit="nowhere",reason="limit_not_configured",rule="ghost"}`: 1,
		`ratelimit_denials_total{domain="closed",limit="",reason="unmatched",rule=""}`:                     1,
		`ratelimit_charges_total{domain="llm",kind="charge",result="booked",rule="tokens"}`:                2,
		`ratelimit_charges_total{domain="llm",kind="refund",result="booked",rule="tokens"}`:                1,
		`ratelimit_tokens_total{domain="llm",kind="taken",limit="rpm",rule="requests"}`:                    10,
		`ratelimit_tokens_total{domain="llm",kind="taken",limit="rpm",rule="tried"}`:                       3,
		`ratelimit_tokens_total{domain="llm",kind="denied",limit="rpm",rule="requests"}`:                   13,
		`ratelimit_tokens_total{domain="llm",kind="denied",limit="nowhere",rule="ghost"}`:                  1,
		`ratelimit_tokens_total{domain="llm",kind="charged",limit="tpm",rule="tokens"}`:                    10,
		`ratelimit_tokens_total{domain="llm",kind="refunded",limit="tpm",rule="tokens"}`:                   5,
		`ratelimit_invalid_requests_total{reason="no_domain"}`:                                             1,
		`ratelimit_invalid_requests_total{reason="no_descriptors"}`:                                        1,
		`ratelimit_invalid_requests_total{reason="unknown_unit"}`:                                          1,
	}
	if diff := cmp.Diff(want, series(t, e.registry)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// Keys, values and domains of requests make no series.
func TestSeriesAreBounded(t *testing.T) {
	e := newEnv(t, nil)
	forms := []func(x string) []byte{
		func(x string) []byte { return rawCall("llm", "api_key", x, "model", x) },
		func(x string) []byte { return rawCall("llm", x, x) },
		func(x string) []byte { return rawCall(x, "api_key", x) },
		func(x string) []byte { return rawCall("closed", "api_key", x) },
		func(x string) []byte { return rawCall("closed", x, x) },
		func(x string) []byte { return rawCall("llm", "ghost", x) },
		func(x string) []byte { return rawCall("llm", "plan", x) },
		func(x string) []byte { return rawCall("llm", "trial", x) },
	}
	ask := func(i int) {
		if _, err := e.askRaw(t, forms[i%len(forms)](fmt.Sprintf("x%d", i))); err != nil {
			t.Fatal(err)
		}
	}
	for i := range forms {
		ask(i)
	}
	before := len(allSeries(t, e.registry))
	for i := range 10_000 {
		ask(len(forms) + i)
	}
	if after := len(allSeries(t, e.registry)); after != before {
		t.Errorf("10,000 distinct values made %d series of %d", after, before)
	}
}

func TestDurationIsObserved(t *testing.T) {
	e := newEnv(t, func(c *rls.Config) { c.Now = time.Now })
	if _, err := e.ask(t, descriptor1(``, "api_key", "a", "model", "m")); err != nil {
		t.Fatal(err)
	}
	families, err := e.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if h := f.GetMetric()[0].GetHistogram(); h != nil && h.GetSampleCount() == 1 && h.GetSampleSum() > 0 && h.GetSampleSum() < 1 {
			return
		}
	}
	t.Errorf("the call is in no histogram: %v", families)
}
