package server

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/config/yamlcfg"
	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/test/kit/programtest"
)

// newestFiles returns ratelimit_config_last_load_successful.
func newestFiles(t *testing.T, s *Service) float64 {
	t.Helper()
	all, err := s.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		if f.GetName() == "ratelimit_config_last_load_successful" {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatal("there is no such metric")
	return 0
}

// New rules of a control plane say nothing of the newest files, nor new files of its newest rules: what is refused is
// shown until that part is mended.
func TestEachPartIsRefusedByItself(t *testing.T) {
	cfg := programtest.Parsed(t, programtest.TwoPerMinute+"\nxds: {address: '127.0.0.1:1'}\n")
	s, err := New(t.Context(), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(context.WithoutCancel(t.Context()))
	if err := s.followControlPlane(t.Context()); err != nil {
		t.Fatal(err)
	}
	files := func(err error) { s.take(t.Context(), cfg, err) }
	plane := func(key string) {
		_ = s.applyDomains(t.Context(), []descriptor.DomainSpec{{Path: "eg", Domain: "eg", Tree: []descriptor.TreeSpec{{Path: "eg", Key: key}}}}) // the state has the error
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
		got, newest := s.health.State().Config.Error, newestFiles(t, s)
		if !strings.Contains(got, step.refused) || (step.refused == "") != (got == "") || newest != step.newest {
			t.Errorf("after %s: %q, files %v; want %q, %v", step.what, got, newest, step.refused, step.newest)
		}
	}
}
