package awscmd

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/stack"
)

// outputFlag adds --output with its forms, which are checked before the command runs.
func outputFlag(cmd *cobra.Command, value *string, preset string, forms ...string) {
	cmd.Flags().StringVarP(value, "output", "o", preset, strings.Join(forms, ", "))
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if !slices.Contains(forms, *value) {
			return fmt.Errorf("--output is %.50q; it must be %s", *value, strings.Join(forms, ", "))
		}
		return nil
	}
}

// printOutputs prints the outputs of a stack, in order of their names.
func printOutputs(cmd *cobra.Command, info stack.Info) error {
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	for _, name := range slices.Sorted(maps.Keys(info.Outputs)) {
		if _, err := fmt.Fprintf(w, "%s\t%s\n", name, info.Outputs[name]); err != nil {
			return err
		}
	}
	return w.Flush()
}

// stackReport is the output of status.
type stackReport struct {
	stack.Info

	ProgramVersion       string            `json:"program_version"`
	ProgramSchemaVersion int               `json:"program_schema_version"`
	Aggregator           bool              `json:"aggregator"`
	Table                *stack.TableState `json:"table"`           // null = it could not be asked
	Error                string            `json:"error,omitempty"` // why not
}

func newStackStatus() *cobra.Command {
	var target stackTarget
	var output string
	cmd := &cobra.Command{
		Use:   "status [NAME]",
		Short: "Print the health of a stack, its versions and its table",
		Long: `status asks CloudFormation for a stack and DynamoDB for its table. It exits with 1 unless
the stack is healthy and the table answers.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			manager, err := target.manager(cmd.Context(), cmd)
			if err != nil {
				return err
			}
			info, err := manager.Get(cmd.Context(), stackName(args))
			if err != nil {
				return stackFailed(err)
			}
			report := stackReport{Info: info, ProgramVersion: command.Version(), ProgramSchemaVersion: dynamo.SchemaVersion}
			_, report.Aggregator = info.Outputs["AggregatorArn"]
			table, err := manager.Table(cmd.Context(), info.Name)
			if err != nil {
				report.Error = err.Error()
			} else {
				report.Table = &table
			}
			if err := printReport(cmd.OutOrStdout(), output, report); err != nil {
				return command.Failed(err)
			}
			if info.Health != stack.Healthy || report.Table == nil {
				return command.Failed(fmt.Errorf("stack %s is not usable as it is: %s, %s", info.Name, info.Health, cmp.Or(report.Error, "its table answers")))
			}
			return nil
		},
	}
	target.flags(cmd)
	outputFlag(cmd, &output, command.OutputTable, command.OutputTable, command.OutputJSON, command.OutputYAML)
	return cmd
}

func printReport(out io.Writer, form string, r stackReport) error {
	if form != command.OutputTable {
		return command.WriteOne[stack.Info](out, form, nil, nil, r)
	}
	lines := [][2]string{
		{"stack", r.Name},
		{"health", string(r.Health)},
		{"status", r.Status},
		{"reason", r.Reason},
		{"created", command.Moment(r.Created)},
		{"updated", command.Moment(r.Updated)},
		{"deployed by version", r.Version + " (this is " + r.ProgramVersion + ")"},
		{"schema version", fmt.Sprintf("%s (this program has %d)", r.SchemaVersion, r.ProgramSchemaVersion)},
		{"aggregator", aggregatorLine(r)},
		{"error", r.Error},
	}
	if t := r.Table; t != nil {
		lines = append(lines, [][2]string{
			{"table", fmt.Sprintf("%s, answered in %v", t.Status, t.Latency.Round(100*time.Microsecond))},
			{"items", fmt.Sprintf("%d, %d bytes (counted every few hours)", t.Items, t.Bytes)},
			{"deletion protection", map[bool]string{true: "on", false: "off"}[t.Protected]},
		}...)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Outputs)) {
		lines = append(lines, [2]string{name, r.Outputs[name]})
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, line := range lines {
		if line[1] == "" {
			continue
		}
		if _, err := fmt.Fprintf(w, "%s\t%s\n", line[0], line[1]); err != nil {
			return err
		}
	}
	return w.Flush()
}

// aggregatorLine says which code the aggregator has.
func aggregatorLine(r stackReport) string {
	if !r.Aggregator {
		return "none"
	}
	return "deployed, " + cmp.Or(r.Info.Aggregator, "code by parameters")
}

func newStackList() *cobra.Command {
	var target stackTarget
	var output string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the stacks of a region, with health and versions",
		Args:  command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			manager, err := target.manager(cmd.Context(), cmd)
			if err != nil {
				return err
			}
			infos, err := manager.List(cmd.Context())
			if err != nil {
				return stackFailed(err)
			}
			return command.WriteOne(cmd.OutOrStdout(), output, stackColumns(), infos, infos)
		},
	}
	target.flags(cmd)
	outputFlag(cmd, &output, command.OutputTable, command.Outputs()...)
	return cmd
}

// stackColumns are those of a list of stacks.
func stackColumns() []command.Column[stack.Info] {
	return []command.Column[stack.Info]{
		{Title: "NAME", Value: func(i stack.Info) string { return i.Name }},
		{Title: "HEALTH", Value: func(i stack.Info) string { return string(i.Health) }},
		{Title: "STATUS", Value: func(i stack.Info) string { return i.Status }},
		{Title: "VERSION", Value: func(i stack.Info) string { return i.Version }},
		{Title: "SCHEMA", Value: func(i stack.Info) string { return i.SchemaVersion }},
		{Title: "CREATED", Value: func(i stack.Info) string { return command.Moment(i.Created) }},
		{Title: "UPDATED", Value: func(i stack.Info) string { return cmp.Or(command.Moment(i.Updated), "never") }},
		{Title: "ID", Value: func(i stack.Info) string { return i.ID }, Wide: true},
	}
}
