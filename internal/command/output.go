package command

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"gopkg.in/yaml.v3"

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
	// Limit is the name of the limit of which the numbers are amounts, see [Amounts]; nil = they are of none.
	Limit func(V) string
}

// minGrouped is the fewest digits that are grouped.
const minGrouped = 5

// Amounts writes the text of a limit, or an amount of it, as people read it: digits in groups of three, as in
// 2_000_000/month, and dollars for a limit of money. The configuration and the commands read it so.
func Amounts(limit, text string) string {
	if !money.Is(limit) || strings.Contains(text, " in flight ") {
		return grouped(text)
	}
	words := strings.Split(text, " ")
	for i, word := range words {
		amount, rest, rate := strings.Cut(word, "/")
		if i > 0 && words[i-1] == "from" { // a day
			continue
		}
		if words[i] = grouped(money.Text(amount)); rate {
			words[i] += "/" + rest
		}
	}
	return strings.Join(words, " ")
}

// grouped groups the digits at the begin of each word by threes.
func grouped(text string) string {
	words := strings.Split(text, " ")
	for i, word := range words {
		sign, word := word[:len(word)-len(strings.TrimPrefix(word, "-"))], strings.TrimPrefix(word, "-")
		digits := len(word) - len(strings.TrimLeft(word, "0123456789"))
		if digits < minGrouped {
			continue
		}
		var out strings.Builder
		for k, digit := range word[:digits] {
			if k > 0 && (digits-k)%3 == 0 {
				out.WriteByte('_')
			}
			out.WriteRune(digit)
		}
		words[i] = sign + out.String() + word[digits:]
	}
	return strings.Join(words, " ")
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
				cell = Amounts(c.Limit(row), cell)
			case c.Amount:
				cell = grouped(cell)
			}
			cells = append(cells, cell)
		}
		_, _ = fmt.Fprintln(tw, strings.TrimRight(strings.Join(cells, "\t"), "\t"))
	}
	return tw.Flush()
}

// WriteYAML writes a value with the members of its JSON, in the same order.
func WriteYAML(w io.Writer, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	var node yaml.Node
	if err := yaml.Unmarshal(text, &node); err != nil {
		return err
	}
	plain(&node)
	enc := yaml.NewEncoder(w)
	enc.SetIndent(2)
	if err := enc.Encode(&node); err != nil {
		return err
	}
	return enc.Close()
}

// plain drops the style of JSON.
func plain(node *yaml.Node) {
	node.Style = 0
	for _, child := range node.Content {
		plain(child)
	}
}

// Report describes the change of a record: by the text for people, else as a whole.
func Report[V any](cmd *cobra.Command, form, text string, change *api.Change[V]) error {
	if change.InMemory && change.Result != api.Unchanged {
		NoteMemory(cmd)
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
