package server

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/config/yamlcfg"
	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/test/kit/programtest"
)

// valueOf returns the value of the metric with a name, which has one series.
func valueOf(t *testing.T, s *Service, name string) float64 {
	t.Helper()
	all, err := s.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		if f.GetName() == name {
			return f.GetMetric()[0].GetGauge().GetValue() + f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	return 0
}

// planned returns a service that has a control plane, which does not answer, and the configuration of its files.
func planned(t *testing.T) (*Service, *config.Config) {
	t.Helper()
	cfg := programtest.Parsed(t, programtest.TwoPerMinute+"\nxds: {address: '127.0.0.1:1'}\n")
	s, err := New(t.Context(), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(context.WithoutCancel(t.Context())) })
	if err := s.followControlPlane(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s, cfg
}

// Each answer that is refused counts and is shown, also one whose rules cannot be read.
func TestEachRefusedAnswerIsShown(t *testing.T) {
	resource := func(domain string) *anypb.Any {
		of, err := anypb.New(&ratelimitv3.RateLimitConfig{Name: "eg", Domain: domain})
		if err != nil {
			t.Fatal(err)
		}
		return of
	}
	for what, answer := range map[string]*discoveryv3.DiscoveryResponse{
		"another type":   {TypeUrl: "type.googleapis.com/envoy.config.cluster.v3.Cluster"},
		"no rules":       {TypeUrl: xdsTypeURL, Resources: []*anypb.Any{{TypeUrl: xdsTypeURL, Value: []byte{0xff}}}},
		"no domain":      {TypeUrl: xdsTypeURL, Resources: []*anypb.Any{resource("")}},
		"a domain twice": {TypeUrl: xdsTypeURL, Resources: []*anypb.Any{resource("eg"), resource("eg")}},
	} {
		s, _ := planned(t)
		client := &xdsClient{Log: slog.New(slog.DiscardHandler), Apply: s.applyDomains, Connected: func(bool) {}}
		err := client.take(t.Context(), answer)
		counted, shown := valueOf(t, s, "ratelimit_xds_updates_total"), s.health.State().Config.Error
		if err == nil || counted != 1 || shown == "" {
			t.Errorf("%s: error %v, %v refused, shown as %q", what, err, counted, shown)
		}
	}
}

// New rules of a control plane say nothing of the newest files, nor new files of its newest rules: what is refused is
// shown until that part is mended.
func TestEachPartIsRefusedByItself(t *testing.T) {
	s, cfg := planned(t)
	files := func(err error) { s.take(t.Context(), cfg, err) }
	plane := func(key string) {
		_ = s.applyDomains(t.Context(), []descriptor.DomainSpec{{Path: "eg", Domain: "eg", Tree: []descriptor.TreeSpec{{Path: "eg", Key: key}}}}, nil) // the state has the error
	}
	const ofFiles, ofPlane = "c.yaml:3", "the rules of the control plane"
	for _, step := range []struct {
		what    string
		do      func()
		refused string
		newest  float64
	}{
		{"files with a mistake", func() { files(yamlcfg.Problems{{File: "c.yaml", Line: 3}}) }, ofFiles, 0},
		{"rules of the control plane", func() { plane("user") }, ofFiles, 0},
		{"rules with a mistake", func() { plane("") }, ofFiles, 0},
		{"mended files", func() { files(nil) }, ofPlane, 1},
		{"mended rules", func() { plane("user") }, "", 1},
	} {
		step.do()
		got, newest := s.health.State().Config.Error, valueOf(t, s, "ratelimit_config_last_load_successful")
		if !strings.Contains(got, step.refused) || (step.refused == "") != (got == "") || newest != step.newest {
			t.Errorf("after %s: %q, files %v; want %q, %v", step.what, got, newest, step.refused, step.newest)
		}
		state, next := s.health.State(), map[string]string{ofFiles: "ratelimit check --rules R shows every mistake", ofPlane: "correct the rules at the control plane"}[step.refused]
		if !slices.ContainsFunc(stateProblems(&state, "ratelimit check --rules R"), func(p api.StatusProblem) bool { return p.Do == next }) && next != "" {
			t.Errorf("after %s the next step is not %q", step.what, next)
		}
	}
}
