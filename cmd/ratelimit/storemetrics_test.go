package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
)

// What a store reports is named in the documentation of the configuration.
func TestMetricsOfStoresAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	named := func(t *testing.T, s *service, prefix string, least int) {
		families, err := s.registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if !strings.HasPrefix(f.GetName(), prefix) {
				continue
			}
			least--
			if !strings.Contains(string(page), "`"+f.GetName()+"`") {
				t.Errorf("docs/configuration.md does not say what %s is", f.GetName())
			}
			for _, m := range f.GetMetric() {
				if len(m.GetLabel()) > 0 {
					t.Errorf("%s has labels: %v", f.GetName(), m.GetLabel())
				}
			}
		}
		if least > 0 {
			t.Errorf("%d metrics of %s* are missing", least, prefix)
		}
	}
	t.Run("of a table", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := startReplica(t, newTable(t), twoPerMinute)
			defer r.stop()
			named(t, r.service, "ratelimit_dynamodb_", 20)
		})
	})
	t.Run("of a data directory", func(t *testing.T) {
		cfg := parsed(t, twoPerMinute)
		cfg.Store.Embedded.Data = filepath.Join(t.TempDir(), "data")
		s, err := newService(t.Context(), cfg, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		defer s.close(t.Context())
		named(t, s, "ratelimit_store_", 9)
	})
}
