package cli

import (
	"encoding/csv"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/money"
)

func usage(entity api.Name, hour int, used map[string]api.Tokens) api.Usage {
	start := time.Date(2026, 11, 22, hour, 0, 0, 0, time.UTC)
	return api.Usage{Entity: entity, Resource: "gpt-4", Window: api.Hour, Start: start, End: start.Add(time.Hour), Used: used}
}

func Example() {
	all := []api.Usage{
		usage("key/k-1", 9, map[string]api.Tokens{"rpm": 2000}),
		usage("key/k-1", 10, map[string]api.Tokens{"rpm": 8000}),
	}
	for _, r := range usageRows(all, 8) {
		fmt.Println(r.Start.Hour(), r.Limit, r.Amount, r.Bar)
	}
	c, err := newUsageCSV(os.Stdout)
	if err == nil {
		err = c.Write(all[:1])
	}
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// 9 rpm 2 ██
	// 10 rpm 8 ████████
	// window,start,end,entity,resource,limit,used,events
	// hour,2026-11-22T09:00:00Z,2026-11-22T10:00:00Z,key/k-1,gpt-4,rpm,2,0
}

func TestRowsAreBySeriesAndTime(t *testing.T) {
	rows := usageRows([]api.Usage{
		usage("b", 1, map[string]api.Tokens{"rpm": -5, "tpm": 1}),
		usage("a", 2, map[string]api.Tokens{"rpm": 1000}),
		usage("a", 1, map[string]api.Tokens{"rpm": 1}),
	}, 10)
	got := make([]string, 0, len(rows))
	for _, r := range rows {
		got = append(got, fmt.Sprintf("%s %s %d %s%s", r.Entity, r.Limit, r.Start.Hour(), r.Amount, r.Bar))
	}
	want := []string{"a rpm 1 0.001▏", "a rpm 2 1██████████", "b rpm 1 -0.005", "b tpm 1 0.001██████████"}
	// the greatest use of a limit is that of the list
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A budget stands beside the use, with the part that is used.
func TestBudgetsStandBesideUse(t *testing.T) {
	with, without := usage("a", 1, map[string]api.Tokens{"usd": 12_999, "rpm": 1000}), usage("b", 1, map[string]api.Tokens{"usd": 1000})
	with.Budget, with.BudgetFrom = map[string]int64{"usd": 13, "tpm": 0}, map[string]string{"usd": "entity (stored)", "tpm": "system (file)"}
	with.Used["tpm"] = 1000
	for i, want := range []string{"rpm 1 - - -", "tpm 1 0 system (file) -", "usd 0.000012999 USD 0.000013 USD entity (stored) 99", "usd 0.000001 USD - - -"} {
		rows := usageRows([]api.Usage{with, without}, 10)
		var cells []string
		for _, c := range usageColumns(rows) {
			if slices.Contains([]string{"LIMIT", "USED", "BUDGET", "FROM", "%"}, c.Title) {
				cell := c.Value(rows[i])
				if c.Limit != nil {
					cell = money.Amounts(c.Limit(rows[i]), cell)
				}
				cells = append(cells, cell)
			}
		}
		if got := strings.Join(cells, " "); got != want {
			t.Errorf("row %d: got %q, want %q", i, got, want)
		}
	}
}

// No bar is longer than the width, and a larger amount has no shorter bar.
func TestBars(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Int64().Draw(t, "a"), rapid.Int64().Draw(t, "b")
		width := rapid.IntRange(1, 100).Draw(t, "width")
		rows := usageRows([]api.Usage{usage("e", 1, map[string]api.Tokens{"l": api.Tokens(min(a, b))}), usage("e", 2, map[string]api.Tokens{"l": api.Tokens(max(a, b))})}, width)
		small, large := utf8.RuneCountInString(rows[0].Bar), utf8.RuneCountInString(rows[1].Bar)
		if small > large || large > width || (rows[1].Amount > 0) != (large > 0) {
			t.Fatalf("%d: %q, %d: %q in %d characters", rows[0].Amount, rows[0].Bar, rows[1].Amount, rows[1].Bar, width)
		}
	})
}

// Any name is one cell, no two have the same one, and none is a formula.
func TestCSVHasAnyName(t *testing.T) {
	var b strings.Builder
	c := continueUsageCSV(&b)
	names := []api.Name{"a,b", "\"quoted\"\nline", "\xff", `"\xff"`, "=1+1", "'=1+1", "+1", "-1", "@a", "\t=1", "'"}
	for _, name := range names {
		if err := c.Write([]api.Usage{usage(name, 1, map[string]api.Tokens{"rpm": 1500})}); err != nil {
			t.Fatal(err)
		}
	}
	lines, err := csv.NewReader(strings.NewReader(b.String())).ReadAll()
	if err != nil || len(lines) != len(names) {
		t.Fatalf("%d lines, %v", len(lines), err)
	}
	seen := map[string]bool{}
	for i, name := range names {
		cell := lines[i][3]
		if strings.TrimPrefix(cell, "'") != name.String() && cell != "'"+name.String() || lines[i][6] != "1.5" {
			t.Errorf("%q: %q", name, lines[i])
		}
		if seen[cell] || strings.ContainsAny(cell[:1], "=+-@\t\r") {
			t.Errorf("%q: the cell %q is a formula, or another name's", name, cell)
		}
		seen[cell] = true
	}
}

func TestParseTime(t *testing.T) {
	now := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"1h30m": "2026-11-22T07:30:00Z", "0s": "2026-11-22T09:00:00Z", "2026-11-22T09:30:00+02:00": "2026-11-22T07:30:00Z", "2026-11-22": "2026-11-22T00:00:00Z", "2026-11": "2026-11-01T00:00:00Z", "": "0001-01-01T00:00:00Z",
	} {
		if got, err := parseUsageTime(now, text); err != nil || got.UTC().Format(time.RFC3339) != want {
			t.Errorf("%q: %v, %v; want %s", text, got, err, want)
		}
	}
	for _, bad := range []string{"yesterday", "2026-13", "2026-11-22 09:00", "-1h", "1d"} {
		if _, err := parseUsageTime(now, bad); err == nil {
			t.Errorf("%q is a time", bad)
		}
	}
}
