package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// topFlags are those of the command top.
type topFlags struct {
	operator

	of       api.TopOf
	resource string
	once     bool
	interval time.Duration
}

// NewTop returns the command top.
func NewTop() *cobra.Command {
	f := &topFlags{}
	cmd := &cobra.Command{
		Use: "top", Short: "Show which entities are limited now, or are the busiest", Args: command.NoArgs,
		Long: `top shows the limits of entities with the most denials of the last minute, or with --by busiest
those with the most decisions. --by shadow shows the entities that would be denied by rules in
shadow mode and by shadow limits. On a terminal it goes on until q or Ctrl-C. Numbers are those of
the replica that answers; clients that invent names can make them too small, never too large.

--fleet adds those of all other replicas of the store: at most 20 rows of each, of its last
report, which is up to 20 seconds old.`,
		Example: `  ratelimit top
  ratelimit top --by busiest --limit tpm
  ratelimit top --by shadow
  ratelimit top --fleet
  ratelimit top --once -o json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.of.Resource = api.Name(f.resource)
			if f.interval < 100*time.Millisecond || f.interval > time.Hour {
				return fmt.Errorf("--interval is %v; it must be 100ms to 1h", f.interval)
			}
			if !slices.Contains(topOrders(), f.of.By) {
				return fmt.Errorf("--by is %q; it must be %s", f.of.By, strings.Join(topOrders(), ", "))
			}
			return f.top(cmd)
		},
	}
	f.flags(cmd)
	cmd.Flags().StringVar(&f.of.By, "by", api.TopDenied, "denied: the most denials; busiest: the most decisions that took or charged; shadow: the most denials if limits in shadow mode were in force")
	cmd.Flags().StringVar(&f.resource, "resource", "", "only for this resource")
	cmd.Flags().StringVar(&f.of.Limit, "limit", "", "only limits of this NAME")
	cmd.Flags().IntVar(&f.of.Size, "size", 20, "most rows, 1 to 1000")
	cmd.Flags().BoolVar(&f.of.Fleet, "fleet", false, "of all replicas of the store, and not of one")
	cmd.Flags().BoolVar(&f.once, "once", false, "show it once, also on a terminal")
	cmd.Flags().DurationVar(&f.interval, "interval", time.Second, "time from one table to the next on a terminal")
	completer{&f.operator}.flags(cmd)
	_ = cmd.RegisterFlagCompletionFunc("by", cobra.FixedCompletions(topOrders(), cobra.ShellCompDirectiveNoFileComp)) // the flag is there
	return cmd
}

// topOrders are the values of --by.
func topOrders() []string { return []string{api.TopDenied, api.TopBusiest, api.TopShadow} }

func (f *topFlags) top(cmd *cobra.Command) error {
	if f.tableFlags.given() {
		return errors.New("top shows the decisions of a running service, and a table has none: leave out --store and --table")
	}
	c, err := f.connect(cmd.Context())
	if err != nil {
		return err
	}
	if cmd.Flags().Changed("namespace") {
		f.of.Namespace = f.namespace
		if err := f.noteUnknown(cmd.Context(), c.Namespace(f.namespace)); err != nil {
			return err
		}
	}
	in, _ := cmd.InOrStdin().(*os.File)
	out, _ := cmd.OutOrStdout().(*os.File)
	screen := &liveScreen{In: in, Out: out, Every: f.interval}
	table := f.output == command.OutputTable || f.output == command.OutputWide
	if f.once || !table || in == nil || out == nil || !screen.IsTerminal() {
		top, err := c.Top(cmd.Context(), f.of)
		if err != nil {
			return f.refusal(err)
		}
		return command.WriteOne(cmd.OutOrStdout(), f.output, topColumns(), top.Items, top)
	}
	return screen.Run(cmd.Context(), func(ctx context.Context) (string, error) { return f.page(ctx, c) })
}

// page returns the table with a head line.
func (f *topFlags) page(ctx context.Context, c *api.Client) (string, error) {
	top, err := c.Top(ctx, f.of)
	if err != nil {
		return "", f.refusal(err)
	}
	var text strings.Builder
	of := f.server
	if top.Fleet {
		of += " and all other replicas"
	}
	fmt.Fprintf(&text, "%s, last %d s, %s   (q ends)\n\n", top.By, top.Seconds, of)
	err = command.WriteTable(&text, f.output == command.OutputWide, topColumns(), top.Items)
	return text.String(), err
}

func topLimit(r api.TopRow) string { return r.Limit }

func topColumns() []command.Column[api.TopRow] {
	return []command.Column[api.TopRow]{
		{Title: "NAMESPACE", Wide: true, Value: func(r api.TopRow) string { return r.Namespace.String() }},
		{Title: "ENTITY", Value: func(r api.TopRow) string { return r.Entity.String() }},
		{Title: "RESOURCE", Value: func(r api.TopRow) string { return r.Resource.String() }},
		{Title: "LIMIT", Value: topLimit},
		{Title: "DECISIONS", Amount: true, Value: func(r api.TopRow) string { return strconv.FormatInt(r.Decisions, 10) }},
		{Title: "TOKENS", Limit: topLimit, Value: func(r api.TopRow) string { return wholeTokens(r.Tokens).String() }},
	}
}

// wholeTokens cuts the thousandths of an amount that has whole tokens: numbers of a sliding minute are no more exact.
func wholeTokens(t api.Tokens) api.Tokens {
	if t < limiter.Milli {
		return t
	}
	return t - t%limiter.Milli
}
