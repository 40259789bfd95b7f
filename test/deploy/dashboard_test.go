package deploy_test

import (
	"encoding/json"
	"strings"
	"testing"
)

// board is the dashboard, as far as it is tested.
type board struct {
	UID           string `json:"uid"`
	Title         string `json:"title"`
	SchemaVersion int    `json:"schemaVersion"`
	Panels        []struct {
		ID         int       `json:"id"`
		Title      string    `json:"title"`
		Type       string    `json:"type"`
		Datasource reference `json:"datasource"`
		Grid       struct {
			X int `json:"x"`
			Y int `json:"y"`
			W int `json:"w"`
			H int `json:"h"`
		} `json:"gridPos"`
		FieldConfig struct {
			Defaults struct {
				Thresholds struct {
					Steps []json.RawMessage `json:"steps"`
				} `json:"thresholds"`
			} `json:"defaults"`
		} `json:"fieldConfig"`
		Targets []struct {
			RefID      string    `json:"refId"`
			Expr       string    `json:"expr"`
			Legend     string    `json:"legendFormat"`
			Datasource reference `json:"datasource"`
		} `json:"targets"`
	} `json:"panels"`
	Templating struct {
		List []struct {
			Name       string `json:"name"`
			Type       string `json:"type"`
			Definition string `json:"definition"`
		} `json:"list"`
	} `json:"templating"`
}

type reference struct {
	UID string `json:"uid"`
}

func dashboard(t *testing.T) *board {
	t.Helper()
	b := new(board)
	if err := json.Unmarshal([]byte(readFile(t, "deploy", "grafana", "ratelimit.json")), b); err != nil {
		t.Fatal(err)
	}
	return b
}

// queries returns those of the panels and of the variables.
func (b *board) queries() []string {
	var all []string
	for _, p := range b.Panels {
		for _, target := range p.Targets {
			all = append(all, target.Expr)
		}
	}
	for _, v := range b.Templating.List {
		if inner, ok := strings.CutPrefix(v.Definition, "label_values("); ok {
			query, _, _ := strings.Cut(inner, ",")
			all = append(all, query)
		}
	}
	return all
}

// Every query can be parsed, and asks the data source that is chosen.
func TestDashboardQueries(t *testing.T) {
	b := dashboard(t)
	if n := len(b.queries()); n < 20 {
		t.Errorf("queries: got %d, want more", n)
	}
	for _, p := range b.Panels {
		for _, target := range p.Targets {
			parsed(t, target.Expr)
			if p.Datasource.UID != "${datasource}" || target.Datasource.UID != "${datasource}" {
				t.Errorf("%s, %s: has a data source of its own", p.Title, target.RefID)
			}
			if !strings.Contains(target.Expr, `job=~"$job"`) {
				t.Errorf("%s, %s: does not choose by job", p.Title, target.RefID)
			}
		}
		if (len(p.Targets) == 0) != (p.Type == "row") {
			t.Errorf("%s: a %s with %d queries", p.Title, p.Type, len(p.Targets))
		}
	}
}

// Panels have ids and titles of their own, and do not overlap.
func TestDashboardLayout(t *testing.T) {
	b := dashboard(t)
	if b.UID == "" || b.Title == "" || b.SchemaVersion < 36 {
		t.Errorf("got %q, %q, schema %d", b.UID, b.Title, b.SchemaVersion)
	}
	ids, titles, taken := map[int]bool{}, map[string]bool{}, map[[2]int]string{}
	for _, p := range b.Panels {
		if ids[p.ID] || titles[p.Title] || p.Title == "" {
			t.Errorf("%d, %q: is there twice", p.ID, p.Title)
		}
		ids[p.ID], titles[p.Title] = true, true
		if p.Grid.X < 0 || p.Grid.W < 1 || p.Grid.X+p.Grid.W > 24 {
			t.Errorf("%q: is wider than the grid", p.Title)
		}
		for x := p.Grid.X; x < p.Grid.X+p.Grid.W; x++ {
			for y := p.Grid.Y; y < p.Grid.Y+p.Grid.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" {
					t.Fatalf("%q lies on %q", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
	}
}
