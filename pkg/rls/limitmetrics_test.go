package rls_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/rls"
)

// The metrics have the names of limitador, and end with their domains.
func TestLimitadorMetrics(t *testing.T) {
	t.Parallel()
	e := replicas(t, 1)[0].limited(t)
	for _, request := range []string{chat("al", `,"hitsAddend":99`), chat("al", ""), chat("al", ""), chat("bo", `,"hitsAddend":99`)} {
		if _, err := e.ask(t, request); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := e.kuadrant(t, "Report", chat("cy", `,"hitsAddend":7`)); err != nil {
		t.Fatal(err)
	}
	got := series(t, e.registry)
	for name, want := range map[string]float64{
		`authorized_calls{limitador_namespace="ns"}`: 2, `authorized_hits{limitador_namespace="ns"}`: 107,
		`limited_calls{limitador_limit_name="tokens",limitador_namespace="ns"}`: 1, `limited_calls{limitador_limit_name="all",limitador_namespace="ns"}`: 1,
	} {
		if got[name] != want {
			t.Errorf("%s: got %v, want %v", name, got[name], want)
		}
	}
	if id := e.hold(t, "di", 20); !e.commit(t, "di", id, 5) {
		t.Error("the reservation was not released")
	}
	if n := series(t, e.registry)[`ratelimit_tokens_total{domain="ns",kind="refunded",limit="tokens",rule="tokens"}`]; n != 15 {
		t.Errorf("refunded %v, want 15", n)
	}
	e.clock.advance(2 * time.Hour)
	e.service.Reload(nil, &rls.Options{})
	for name := range allSeries(t, e.registry) {
		if strings.Contains(name, "limitador") {
			t.Errorf("%s is left", name)
		}
	}
}

// A report is lost for a limit whose condition cannot be evaluated, and for no other limit of the call.
func TestReportIsLostForOneLimit(t *testing.T) {
	t.Parallel()
	e := replicas(t, 1)[0]
	e.service.Reload(compile(t, []descriptor.DomainSpec{{Path: "limits", Domain: "ns", Limits: []descriptor.CallLimitSpec{
		{Path: "[0]", Name: "one", MaxValue: 100, Seconds: 60},
		{Path: "[1]", Name: "odd", MaxValue: 100, Seconds: 60, Conditions: []string{`int(descriptors[0].user) % 2 == 1`}},
		{Path: "[2]", Name: "two", MaxValue: 100, Seconds: 3600},
	}}}), &rls.Options{Limitador: true})
	if _, err := e.kuadrant(t, "Report", chat("al", `,"hitsAddend":7`)); err != nil {
		t.Fatal(err)
	}
	got := series(t, e.registry)
	for name, want := range map[string]float64{
		`ratelimit_charges_total{domain="ns",kind="charge",result="booked",rule="one"}`: 1,
		`ratelimit_charges_total{domain="ns",kind="charge",result="lost",rule="odd"}`:   1,
		`ratelimit_charges_total{domain="ns",kind="charge",result="booked",rule="two"}`: 1,
		`ratelimit_tokens_total{domain="ns",kind="charged",limit="one",rule="one"}`:     7,
		`ratelimit_tokens_total{domain="ns",kind="charged",limit="two",rule="two"}`:     7,
	} {
		if got[name] != want {
			t.Errorf("%s: got %v, want %v", name, got[name], want)
		}
	}
}
