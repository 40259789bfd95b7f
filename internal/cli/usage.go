package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

const (
	usageBar      = 30     // width of the longest bar, in characters
	usageProgress = 10_000 // windows of an export between two messages
)

// usageFlags say which usage is meant.
type usageFlags struct {
	entity, resource, window, from, to string
}

func (f *usageFlags) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.entity, "entity", "", "only usage of this entity")
	cmd.Flags().StringVar(&f.resource, "resource", "", "only usage of this resource")
	cmd.Flags().StringVar(&f.window, "window", string(api.Hour), "hour, day or month, of UTC")
	cmd.Flags().StringVar(&f.from, "from", "", "only windows that start at this time or later, such as 2026-11-22T09:00:00Z, 2026-11-22, 2026-11, or 1h for an hour ago")
	cmd.Flags().StringVar(&f.to, "to", "", "only windows that start before this time")
	_ = cmd.RegisterFlagCompletionFunc("window", cobra.FixedCompletions([]string{string(api.Hour), string(api.Day), string(api.Month)}, cobra.ShellCompDirectiveNoFileComp))
}

func (f *usageFlags) of() (of api.UsageOf, err error) {
	of = api.UsageOf{Entity: api.Name(f.entity), Resource: api.Name(f.resource), Window: api.Window(f.window)}
	of.From, of.To, err = parseUsageTimes(time.Now(), f.from, f.to)
	return of, err
}

func (r usageRow) limitName() string { return r.Limit }

// hasBudget reports whether there is a budget. It may be one of nothing.
func (r usageRow) hasBudget() bool { return r.Budget > 0 || r.From != "" }

func (r usageRow) budget() string {
	if !r.hasBudget() {
		return "-"
	}
	return strconv.FormatInt(r.Budget, 10)
}

// usageColumns returns the columns of rows. Budgets have two where a row has one.
func usageColumns(rows []usageRow) []command.Column[usageRow] {
	columns := []command.Column[usageRow]{
		{Title: "ENTITY", Value: func(r usageRow) string { return r.Entity.String() }},
		{Title: "RESOURCE", Value: func(r usageRow) string { return r.Resource.String() }},
		{Title: "LIMIT", Value: func(r usageRow) string { return r.Limit }},
		{Title: "START", Value: func(r usageRow) string { return r.Start.UTC().Format(time.RFC3339) }},
		{Title: "END", Wide: true, Value: func(r usageRow) string { return r.End.UTC().Format(time.RFC3339) }},
		{Title: "EVENTS", Amount: true, Wide: true, Value: func(r usageRow) string { return orNone(r.Events) }},
		{Title: "USED", Limit: usageRow.limitName, Value: func(r usageRow) string { return r.Amount.String() }},
	}
	if slices.ContainsFunc(rows, usageRow.hasBudget) {
		columns = append(columns,
			command.Column[usageRow]{Title: "BUDGET", Limit: usageRow.limitName, Value: usageRow.budget},
			command.Column[usageRow]{Title: "FROM", Value: func(r usageRow) string { return cmp.Or(r.From, "-") }},
			command.Column[usageRow]{Title: "%", Value: func(r usageRow) string { return percentOf(r.Amount, r.Budget) }},
		)
	}
	return append(columns, command.Column[usageRow]{Title: barTitle(rows), Value: func(r usageRow) string { return r.Bar }})
}

// barTitle names the amounts that bars compare with.
func barTitle(rows []usageRow) string {
	budgets := 0
	for _, r := range rows {
		if r.Budget > 0 {
			budgets++
		}
	}
	switch budgets {
	case 0:
		return "OF MAXIMUM"
	case len(rows):
		return "OF BUDGET"
	default:
		return "OF BUDGET, ELSE OF MAXIMUM"
	}
}

// percentOf returns which part of a budget is used, rounded down; - without a budget.
func percentOf(used api.Tokens, budget int64) string {
	if budget == 0 {
		return "-"
	}
	return strconv.FormatInt(int64(used)/10/budget, 10) // used is in thousandths
}

// noteUncounted notes that nothing was found because no aggregator counts, or one is late.
func (o *operator) noteUncounted(ctx context.Context, service *api.Client) {
	s, err := service.Status(ctx)
	if err != nil || s.Aggregator == nil { // the command has its answer already
		return
	}
	switch s.Aggregator.State {
	case api.AggregatorUnseen, api.AggregatorBehind, api.AggregatorFailing, api.AggregatorSilent:
		_, _ = fmt.Fprintln(o.notes(), "note: aggregator:", s.Aggregator.Text) // the same
	case api.AggregatorNotNeeded, api.AggregatorUnknown, api.AggregatorCurrent:
	}
}

func listUsage(o *operator) *cobra.Command {
	var f usageFlags
	var size int
	var after string
	cmd := &cobra.Command{
		Use: "usage", Short: "List consumption by hour, day or month", Args: command.NoArgs,
		Long: `list usage shows the consumption of entities, net of refunds, by hour, day or month,
and the budget that is in force now: the quota that decides, or else the budget of events. A bar compares the use with the budget, or without one with
the greatest use of the limit in the list; its title says which. -o csv writes every page as
it comes and reports progress; an export that was cut off goes on with --after.`,
		Example: `  ratelimit list usage --entity key/k-123 --window day --from 2026-11
  ratelimit list usage --window month -o csv > usage.csv`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			of, err := f.of()
			if err != nil {
				return err
			}
			if o.output == command.OutputCSV {
				return o.exportUsage(cmd, of, after)
			}
			if after != "" {
				return errors.New("--after belongs to -o csv")
			}
			n, err := o.inNamespace(cmd.Context())
			if err != nil {
				return err
			}
			of.Budgets = true
			list, err := collect(o, size, func(p api.Page) (*api.List[api.Usage], error) { return n.ListUsage(cmd.Context(), of, p) })
			if err != nil {
				return err
			}
			if len(list.Items) == 0 {
				o.noteNowhere(cmd.Context(), n, of.Entity, of.Resource)
				o.noteUncounted(cmd.Context(), n.Service)
			}
			rows := usageRows(list.Items, usageBar)
			return command.WriteOne(cmd.OutOrStdout(), o.output, usageColumns(rows), rows, list)
		},
	}
	f.flags(cmd)
	sizeFlag(cmd, &size)
	cmd.Flags().StringVar(&after, "after", "", "with -o csv: the cursor where an export was cut off")
	return cmd
}

// exportUsage writes all usage as CSV, page by page.
func (o *operator) exportUsage(cmd *cobra.Command, of api.UsageOf, after string) error {
	o.output = command.OutputTable
	n, err := o.inNamespace(cmd.Context())
	if err != nil {
		return err
	}
	w := continueUsageCSV(cmd.OutOrStdout())
	if after == "" {
		if w, err = newUsageCSV(cmd.OutOrStdout()); err != nil {
			return command.Failed(err)
		}
	}
	done, told := 0, 0
	for page, err := range api.Pages(api.Page{After: after, Size: limiter.MaxPage}, func(p api.Page) (*api.List[api.Usage], error) { return n.ListUsage(cmd.Context(), of, p) }) {
		if err != nil {
			if done > 0 {
				cmd.PrintErrf("%d windows were written; go on with --after %s\n", done, after)
			}
			return o.refusal(err)
		}
		if err := w.Write(page.Items); err != nil {
			return command.Failed(err)
		}
		done += len(page.Items)
		after = page.Next
		if after != "" && done >= told+usageProgress {
			told = done
			cmd.PrintErrf("%d windows so far\n", done)
		}
	}
	return nil
}

// usageTotal is the use of one limit in a summary, as a table shows it.
type usageTotal struct {
	of    *api.UsageSummary
	limit string
}

func (t usageTotal) limitName() string { return t.limit }

func usageTotalColumns() []command.Column[usageTotal] {
	return []command.Column[usageTotal]{
		{Title: "LIMIT", Value: func(r usageTotal) string { return r.limit }},
		{Title: "TOTAL", Limit: usageTotal.limitName, Value: func(r usageTotal) string { return r.of.Limits[r.limit].Total.String() }},
		{Title: "AVERAGE", Limit: usageTotal.limitName, Value: func(r usageTotal) string { return r.of.Limits[r.limit].Average.String() }},
		{Title: "WINDOWS", Amount: true, Value: func(r usageTotal) string { return strconv.FormatInt(r.of.Windows, 10) }},
		{Title: "FIRST", Value: func(r usageTotal) string { return r.of.First.UTC().Format(time.RFC3339) }},
		{Title: "LAST", Value: func(r usageTotal) string { return r.of.Last.UTC().Format(time.RFC3339) }},
	}
}

func getUsage(o *operator) *cobra.Command {
	var f usageFlags
	cmd := &cobra.Command{
		Use: "usage", Short: "Sum usage up", Args: command.NoArgs,
		Long: `get usage sums up the lines of list usage: the total of each limit, the average of a window,
and the first and the last window. A window counts once, however many entities and resources
used it.`,
		Example: `  ratelimit get usage --entity key/k-123 --window day --from 2026-11-01 --to 2026-12-01`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			sum, err := readOne(cmd.Context(), o, f.of, func(n *api.NamespaceClient, ctx context.Context, of api.UsageOf) (*api.UsageSummary, error) {
				sum, err := n.SumUsage(ctx, of)
				if err == nil && sum.Windows == 0 {
					o.noteNowhere(ctx, n, of.Entity, of.Resource)
				}
				return sum, err
			})
			if err != nil {
				return err
			}
			rows := make([]usageTotal, 0, len(sum.Limits))
			for _, limit := range slices.Sorted(maps.Keys(sum.Limits)) {
				rows = append(rows, usageTotal{sum, limit})
			}
			return command.WriteOne(cmd.OutOrStdout(), o.output, usageTotalColumns(), rows, sum)
		},
	}
	f.flags(cmd)
	return cmd
}
