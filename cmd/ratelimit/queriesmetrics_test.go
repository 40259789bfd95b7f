package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/internal/server"
	"github.com/ratelimit/ratelimit/test/kit/programtest"
	"github.com/ratelimit/ratelimit/test/kit/valkeytest"
)

var descriptionOf = regexp.MustCompile(`fqName: "([^"]+)".*constLabels: \{(.*)\}, variableLabels: \{(.*)\}\}$`)

// describe adds the labels of every metric of a registry, by its name.
func describe(t *testing.T, all map[string][]string, registry *prometheus.Registry) {
	t.Helper()
	described := make(chan *prometheus.Desc)
	go func() {
		registry.Describe(described)
		close(described)
	}()
	for d := range described {
		m := descriptionOf.FindStringSubmatch(d.String())
		if m == nil {
			t.Fatalf("no description: %v", d)
		}
		labels := strings.FieldsFunc(m[3], func(r rune) bool { return r == ',' || r == ' ' })
		for pair := range strings.SplitSeq(m[2], ",") {
			name, _, _ := strings.Cut(pair, "=")
			labels = append(labels, name)
		}
		all[m[1]] = labels
	}
}

// The metrics of alerts and dashboard are those of the program, with their labels.
func TestMetricsOfQueriesExist(t *testing.T) {
	registered := map[string][]string{}
	synctest.Test(t, func(t *testing.T) {
		r := startReplica(t, newTable(t), programtest.TwoPerMinute)
		defer r.stop()
		describe(t, registered, r.Registry)
	})
	cfg := programtest.Parsed(t, programtest.TwoPerMinute)
	cfg.Store.Embedded.Data = filepath.Join(t.TempDir(), "data")
	s, err := server.New(t.Context(), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(t.Context())
	describe(t, registered, s.Registry)
	cfg = programtest.Parsed(t, programtest.TwoPerMinute)
	cfg.Store.Type, cfg.Store.Valkey.Addresses, cfg.Store.Valkey.Create = config.StoreValkey, []string{valkeytest.Start(t).Address}, true
	onServer, err := server.New(t.Context(), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer onServer.Close(t.Context())
	describe(t, registered, onServer.Registry)
	describe(t, registered, aggregateRegistry())
	text, err := os.ReadFile("../../deploy/metrics.txt")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if len(lines) < 20 {
		t.Errorf("metrics: got %d, want more", len(lines))
	}
	for _, line := range lines {
		fields := strings.Fields(line)
		labels, exists := registered[fields[0]]
		if !exists {
			t.Errorf("the program has no metric %s", fields[0])
		}
		for _, label := range fields[1:] {
			if !slices.Contains(labels, label) {
				t.Errorf("%s has no label %s, only %v", fields[0], label, labels)
			}
		}
	}
}
