package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"gopkg.in/yaml.v3"

	"github.com/ratelimit/ratelimit/pkg/api"
)

// The forms of output.
const (
	outputTable = "table"
	outputWide  = "wide"
	outputJSON  = "json"
	outputYAML  = "yaml"
	outputCSV   = "csv" // of list usage
)

func outputs() []string { return []string{outputTable, outputWide, outputJSON, outputYAML} }

func checkOutput(form string) error {
	if !slices.Contains(outputs(), form) {
		return fmt.Errorf("--output is %q; it must be %s", form, strings.Join(outputs(), ", "))
	}
	return nil
}

// column is a column of a table.
type column[V any] struct {
	title string
	value func(V) string
	wide  bool // only with -o wide
}

// writeOne writes one value in a form of output.
func writeOne[V any](w io.Writer, form string, columns []column[V], rows []V, whole any) error {
	switch form {
	case outputJSON:
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return failed(enc.Encode(whole))
	case outputYAML:
		return failed(writeYAML(w, whole))
	default:
		return failed(writeTable(w, form == outputWide, columns, rows))
	}
}

// writeTable writes rows below the titles of their columns.
func writeTable[V any](w io.Writer, wide bool, columns []column[V], rows []V) error {
	tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	var titles []string
	for _, c := range columns {
		if wide || !c.wide {
			titles = append(titles, c.title)
		}
	}
	_, _ = fmt.Fprintln(tw, strings.TrimRight(strings.Join(titles, "\t"), "\t")) // Flush has the error
	for _, row := range rows {
		cells := make([]string, 0, len(titles))
		for _, c := range columns {
			if wide || !c.wide {
				cells = append(cells, c.value(row))
			}
		}
		_, _ = fmt.Fprintln(tw, strings.TrimRight(strings.Join(cells, "\t"), "\t"))
	}
	return tw.Flush()
}

// writeYAML writes a value with the members of its JSON, in the same order.
func writeYAML(w io.Writer, v any) error {
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

// report describes for people the change of a record.
func report[V any](cmd *cobra.Command, form, subject string, change *api.Change[V]) error {
	return reportAs(cmd, form, subject+" "+string(change.Result), change)
}

// reportAs is report with a text of its own.
func reportAs[V any](cmd *cobra.Command, form, text string, change *api.Change[V]) error {
	if change.InMemory && change.Result != api.Unchanged {
		noteMemory(cmd)
	}
	switch form {
	case outputJSON, outputYAML:
		return writeOne[V](cmd.OutOrStdout(), form, nil, nil, change)
	}
	_, err := fmt.Fprintln(cmd.OutOrStdout(), text+dryText(change.DryRun))
	return failed(err)
}

// dryText ends the line that describes the change of a dry run.
func dryText(dry bool) string {
	if dry {
		return " (dry run: nothing was changed)"
	}
	return ""
}

// noteMemory says that a change is not kept.
func noteMemory(cmd *cobra.Command) {
	cmd.PrintErrln("note: the store of this service is in memory: the change ends with its process; serve --data DIR keeps changes")
}
