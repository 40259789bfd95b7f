package command

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"gopkg.in/yaml.v3"

	"github.com/ratelimit/ratelimit/config/yamlcfg"
	"github.com/ratelimit/ratelimit/pkg/money"

	"github.com/ratelimit/ratelimit/pkg/api"
)

// The forms of output.
const (
	OutputTable = "table"
	OutputWide  = "wide"
	OutputJSON  = "json"
	OutputYAML  = "yaml"
	OutputCSV   = "csv" // of list usage
)

// Outputs returns the forms of output that most commands have.
func Outputs() []string { return []string{OutputTable, OutputWide, OutputJSON, OutputYAML} }

// CheckOutput refuses a form of output that is not in [Outputs].
func CheckOutput(form string) error {
	if !slices.Contains(Outputs(), form) {
		return fmt.Errorf("--output is %q; it must be %s", form, strings.Join(Outputs(), ", "))
	}
	return nil
}

// Column is a column of a table.
type Column[V any] struct {
	Title  string
	Value  func(V) string
	Wide   bool // only with -o wide
	Amount bool // the digits of its numbers are grouped
	// Limit is the name of the limit of which the numbers are amounts, see [money.Amounts]; nil = they are of none.
	Limit func(V) string
}

// WriteOne writes one value in a form of output.
func WriteOne[V any](w io.Writer, form string, columns []Column[V], rows []V, whole any) error {
	switch form {
	case OutputJSON:
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return Failed(enc.Encode(whole))
	case OutputYAML:
		return Failed(WriteYAML(w, whole))
	default:
		return Failed(WriteTable(w, form == OutputWide, columns, rows))
	}
}

// WriteTable writes rows below the titles of their columns.
func WriteTable[V any](w io.Writer, wide bool, columns []Column[V], rows []V) error {
	tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	var titles []string
	for _, c := range columns {
		if wide || !c.Wide {
			titles = append(titles, c.Title)
		}
	}
	_, _ = fmt.Fprintln(tw, strings.TrimRight(strings.Join(titles, "\t"), "\t")) // Flush has the error
	for _, row := range rows {
		cells := make([]string, 0, len(titles))
		for _, c := range columns {
			if !wide && c.Wide {
				continue
			}
			cell := c.Value(row)
			switch {
			case c.Limit != nil:
				cell = money.Amounts(c.Limit(row), cell)
			case c.Amount:
				cell = money.Grouped(cell)
			}
			cells = append(cells, cell)
		}
		_, _ = fmt.Fprintln(tw, strings.TrimRight(strings.Join(cells, "\t"), "\t"))
	}
	return tw.Flush()
}

// WriteYAML writes a value with the members of its JSON, in the same order.
func WriteYAML(w io.Writer, v any) error {
	return WriteYAMLAs(w, v, func(*yaml.Node) {})
}

// WriteYAMLAs is WriteYAML of a document that change has changed.
func WriteYAMLAs(w io.Writer, v any, change func(*yaml.Node)) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	var node yaml.Node
	if err := yaml.Unmarshal(yamlcfg.FromJSON(text), &node); err != nil {
		return err
	}
	plain(&node)
	change(&node)
	enc := yaml.NewEncoder(w)
	enc.SetIndent(2)
	if err := enc.Encode(&node); err != nil {
		return err
	}
	return enc.Close()
}

// plain drops the style of JSON, but the quotes of texts that need them.
func plain(node *yaml.Node) {
	if node.Tag != "!!str" || !needsQuotes(node.Value) {
		node.Style = 0
	}
	for _, child := range node.Content {
		plain(child)
	}
}

// needsQuotes reports whether a text would be read as another one without quotes: as a merge key, or as lines of which
// the first is indented or empty. Characters that do not print are seen with quotes only.
func needsQuotes(text string) bool {
	return text == "<<" || strings.TrimLeftFunc(text, unicode.IsSpace) != text ||
		strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) })
}

// Report describes the change of a record: by the text for people, else as a whole.
func Report[V any](cmd *cobra.Command, form, text string, change *api.Change[V]) error {
	if change.InMemory && change.Result != api.Unchanged {
		NoteMemory(cmd)
	}
	if change.Note != "" {
		cmd.PrintErrln("note: " + change.Note)
	}
	switch form {
	case OutputJSON, OutputYAML:
		return WriteOne[V](cmd.OutOrStdout(), form, nil, nil, change)
	}
	_, err := fmt.Fprintln(cmd.OutOrStdout(), text+DryText(change.DryRun))
	return Failed(err)
}

// DryText ends the line that describes the change of a dry run.
func DryText(dry bool) string {
	if dry {
		return " (dry run: nothing was changed)"
	}
	return ""
}

// NoteMemory says that a change is not kept.
func NoteMemory(cmd *cobra.Command) {
	cmd.PrintErrln("note: the store of this service is in memory: the change ends with its process; serve --data DIR keeps changes")
}

// Moment returns a time to the second; "" for the zero time.
func Moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// Count returns a number with its noun, in the plural unless the number is 1.
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
