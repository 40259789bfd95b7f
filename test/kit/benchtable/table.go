// Package benchtable measures the promises of `make bench` and prints them. A row of
// a [Table] is a measured value beside its target and the verdict. [Compare] measures
// one operation as a multiple of another.
//
// A time by itself says as much about the machine as about the program. So targets
// are ratios of two operations that run in turn in the same process. There a change
// of clock speed or a noisy neighbour hits both.
package benchtable

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Row is one line of a table. The texts carry their units; a line break in one is
// printed as a space.
type Row struct {
	Name     string // the quantity: "decision, 1,000 keys"
	Measured string // the measured value: "2.1× a map lookup"
	Target   string // the promise: "at most 3×"
	OK       bool   // whether the promise was kept
}

// Table collects rows in the order in which they are added. The zero value is
// empty and ready for use. It is not safe for concurrent use.
type Table struct {
	rows []Row
}

// Add appends a row.
func (t *Table) Add(r Row) { t.rows = append(t.rows, r) }

// Failed reports whether any row missed its target.
func (t *Table) Failed() bool {
	for _, r := range t.rows {
		if !r.OK {
			return true
		}
	}
	return false
}

// Write writes the table as text in aligned columns, and returns the first error of w.
func (t *Table) Write(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	clean := strings.NewReplacer("\n", " ", "\r", " ", "\t", " ", "\v", " ", "\f", " ")
	for _, line := range t.lines() {
		for i, cell := range line {
			line[i] = clean.Replace(cell)
		}
		if _, err := fmt.Fprintln(tw, strings.Join(line, "\t")); err != nil {
			return fmt.Errorf("write the table: %w", err)
		}
	}
	if err := tw.Flush(); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	return nil
}

// WriteMarkdown writes the table in the form that docs/benchmarks.md holds, and
// returns the first error of w.
func (t *Table) WriteMarkdown(w io.Writer) error {
	clean := strings.NewReplacer("\n", " ", "\r", " ", "|", `\|`)
	var b strings.Builder
	for i, line := range t.lines() {
		for _, cell := range line {
			b.WriteString("| " + clean.Replace(cell) + " ")
		}
		b.WriteString("|\n")
		if i == 0 {
			b.WriteString(strings.Repeat("| --- ", len(line)) + "|\n")
		}
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	return nil
}

// lines returns the cells of the table, the heading first.
func (t *Table) lines() [][]string {
	lines := make([][]string, 0, 1+len(t.rows))
	lines = append(lines, []string{"what", "measured", "target", "verdict"})
	for _, r := range t.rows {
		verdict := "ok"
		if !r.OK {
			verdict = "MISSED"
		}
		lines = append(lines, []string{r.Name, r.Measured, r.Target, verdict})
	}
	return lines
}
