package benchtable_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/test/kit/benchtable"
)

func table(rows ...benchtable.Row) *benchtable.Table {
	var t benchtable.Table
	for _, r := range rows {
		t.Add(r)
	}
	return &t
}

func TestFailed(t *testing.T) {
	kept, missed := benchtable.Row{Name: "kept", OK: true}, benchtable.Row{Name: "missed"}
	tests := []struct {
		name string
		rows []benchtable.Row
		want bool
	}{
		{"no rows", nil, false},
		{"all kept", []benchtable.Row{kept, kept}, false},
		{"the first missed", []benchtable.Row{missed, kept}, true},
		{"the last missed", []benchtable.Row{kept, missed}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := table(tt.rows...).Failed(); got != tt.want {
				t.Errorf("Failed: got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestWrite(t *testing.T) {
	tests := []struct {
		name           string
		rows           []benchtable.Row
		text, markdown []string
	}{
		{
			name:     "no rows",
			text:     []string{"what  measured  target  verdict"},
			markdown: []string{"| what | measured | target | verdict |", "| --- | --- | --- | --- |"},
		},
		{
			name: "aligned by characters, not by bytes",
			rows: []benchtable.Row{
				{Name: "decision", Measured: "2.1×", Target: "at most 3×", OK: true},
				{Name: "matching, 10,000 rules", Measured: "1.62×", Target: "at most 1.5×"},
			},
			text: []string{
				"what                    measured  target        verdict",
				"decision                2.1×      at most 3×    ok",
				"matching, 10,000 rules  1.62×     at most 1.5×  MISSED",
			},
			markdown: []string{
				"| what | measured | target | verdict |",
				"| --- | --- | --- | --- |",
				"| decision | 2.1× | at most 3× | ok |",
				"| matching, 10,000 rules | 1.62× | at most 1.5× | MISSED |",
			},
		},
		{
			name: "characters that would end a cell",
			rows: []benchtable.Row{{Name: "a|b", Measured: "1\n2", Target: "3\r4", OK: true}},
			text: []string{
				"what  measured  target  verdict",
				"a|b   1 2       3 4     ok",
			},
			markdown: []string{
				"| what | measured | target | verdict |",
				"| --- | --- | --- | --- |",
				`| a\|b | 1 2 | 3 4 | ok |`,
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var text, markdown strings.Builder
			if err := table(tt.rows...).Write(&text); err != nil {
				t.Fatal(err)
			}
			if err := table(tt.rows...).WriteMarkdown(&markdown); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.Join(tt.text, "\n")+"\n", text.String()); diff != "" {
				t.Errorf("Write (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(strings.Join(tt.markdown, "\n")+"\n", markdown.String()); diff != "" {
				t.Errorf("WriteMarkdown (-want +got):\n%s", diff)
			}
		})
	}
}

var errFull = errors.New("disk full")

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }

func TestWriteError(t *testing.T) {
	tab := table(benchtable.Row{Name: "decision", OK: true})
	if err := tab.Write(fullDisk{}); !errors.Is(err, errFull) {
		t.Errorf("Write: got %v, want %v", err, errFull)
	}
	if err := tab.WriteMarkdown(fullDisk{}); !errors.Is(err, errFull) {
		t.Errorf("WriteMarkdown: got %v, want %v", err, errFull)
	}
}
