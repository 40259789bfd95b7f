package main

import (
	"flag"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/internal/server"
	"github.com/ratelimit/ratelimit/test/kit/programtest"
	"github.com/ratelimit/ratelimit/test/kit/valkeytest"
)

// update has pages of docs/ written anew.
var update = flag.Bool("update", false, "write the generated parts of docs/metrics.md")

// metricsPage is the page that lists all metrics.
const metricsPage = "../../docs/metrics.md"

// everyMetric is a configuration whose service has all metrics of a service.
const everyMetric = `
limits: {system: {rpm: 2/minute, tpm: 10/minute}}
domains:
- domain: shop
  rules:
  - {name: tokens, match: {user: "*", meter: tokens}, entity: "user/{user}", resource: api, consume: {tpm: hits}, overdraw: true}
  - {name: settle, match: {reservation_id: "*"}, settle: {tpm: hits}}
  - {name: users, match: {user: "*"}, entity: "user/{user}", resource: api, consume: {rpm: hits}}
`

// metricRows returns a row of the page for each metric of a service, by its name. A metric
// that is registered and has no series from the start is an error.
func metricRows(t *testing.T, s *server.Service) map[string]string {
	t.Helper()
	labels := map[string][]string{}
	describe(t, labels, s.Registry)
	families, err := s.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for _, f := range families {
		name := f.GetName()
		if !strings.HasPrefix(name, "ratelimit_") {
			continue
		}
		rows[name] = metricRow(t, name, f.GetType().String(), f.GetHelp(), labels[name])
	}
	for name := range labels {
		if strings.HasPrefix(name, "ratelimit_") && rows[name] == "" {
			t.Errorf("%s has no series from the start", name)
		}
	}
	return rows
}

// metricRow returns the row of a metric. Its name shows its type, as the page says.
func metricRow(t *testing.T, name, kind, help string, labels []string) string {
	t.Helper()
	want := "gauge"
	switch {
	case strings.HasSuffix(name, "_total"):
		want = "counter"
	case name == "ratelimit_request_duration_seconds":
		want = "histogram"
	}
	kind = strings.ToLower(kind)
	if kind != want {
		t.Errorf("%s is a %s, and its name tells of a %s", name, kind, want)
	}
	first := "`" + name + "`"
	if named := strings.Join(slices.DeleteFunc(labels, func(label string) bool { return label == "" }), ","); named != "" {
		first += " `{" + named + "}`"
	}
	return "| " + first + " | " + help + " |\n"
}

// metricTables returns the tables of the page, by the service that has the metrics.
func metricTables(t *testing.T) map[string]string {
	t.Helper()
	var memory, data, dynamodb, onServer map[string]string
	cfg, valkey := programtest.Parsed(t, everyMetric), valkeytest.Start(t)
	for _, rows := range []*map[string]string{&memory, &data, &onServer} {
		s, err := server.New(t.Context(), cfg, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		*rows = metricRows(t, s)
		s.Close(t.Context())
		if rows == &memory {
			cfg.Store.Embedded.Data = filepath.Join(t.TempDir(), "data")
			continue
		}
		cfg.Store.Type, cfg.Store.Valkey.Addresses, cfg.Store.Valkey.Create = config.StoreValkey, []string{valkey.Address}, true
	}
	synctest.Test(t, func(t *testing.T) {
		r := startReplica(t, newTable(t), everyMetric)
		defer r.stop()
		dynamodb = metricRows(t, r.Service)
	})
	common := func(name, _ string) bool { return memory[name] != "" && dynamodb[name] != "" }
	every := maps.Clone(memory)
	maps.DeleteFunc(every, func(name, row string) bool { return !common(name, row) })
	maps.DeleteFunc(data, func(name, _ string) bool { return memory[name] != "" })
	maps.DeleteFunc(memory, common)
	for _, rows := range []map[string]string{dynamodb, onServer} {
		maps.DeleteFunc(rows, func(name, _ string) bool { return every[name] != "" })
	}
	aggregate, budgets := aggregateRows(t), map[string]string{}
	for name, row := range data {
		if aggregate[name] == row {
			budgets[name] = row
		}
	}
	for _, rows := range []map[string]string{data, aggregate, onServer} {
		for name := range budgets {
			if rows[name] == "" {
				t.Errorf("%s is not there wherever budgets are watched", name)
			}
		}
		maps.DeleteFunc(rows, func(name, _ string) bool { return budgets[name] != "" })
	}
	tables := map[string]string{}
	for of, rows := range map[string]map[string]string{
		"every service": every, "embedded": memory, "data": data, "dynamodb": dynamodb, "valkey": onServer, "aggregate": aggregate, "budgets": budgets,
	} {
		if len(rows) < 3 {
			t.Errorf("%s: %d metrics", of, len(rows))
		}
		var table strings.Builder
		table.WriteString("| metric | meaning |\n| --- | --- |\n")
		for _, name := range slices.Sorted(maps.Keys(rows)) {
			table.WriteString(rows[name])
		}
		tables[of] = table.String()
	}
	return tables
}

// The page has every metric of the program, and no other.
func TestMetricsPage(t *testing.T) {
	text, err := os.ReadFile(metricsPage)
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	for of, table := range metricTables(t) {
		begin, end := "<!-- "+of+": generated -->\n", "<!-- end -->"
		before, rest, ok := strings.Cut(page, begin)
		_, after, closed := strings.Cut(rest, end)
		if !ok || !closed {
			t.Fatalf("%s has no place for %q", metricsPage, begin)
		}
		page = before + begin + table + end + after
	}
	switch diff := cmp.Diff(strings.Split(string(text), "\n"), strings.Split(page, "\n")); {
	case diff == "":
	case *update:
		if err := os.WriteFile(metricsPage, []byte(page), 0o600); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s differs from the registry (-page +program); `go test ./cmd/ratelimit -run TestMetricsPage -update` writes it:\n%s", metricsPage, diff)
	}
}

// The page explains the results of decisions.
func TestMetricsPageExplainsResults(t *testing.T) {
	text, err := os.ReadFile(metricsPage)
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.New(t.Context(), programtest.Parsed(t, everyMetric), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(t.Context())
	for result := range s.RLS.Decided() {
		if !strings.Contains(string(text), "`"+result+"`") {
			t.Errorf("%s does not explain the result %s", metricsPage, result)
		}
	}
}
