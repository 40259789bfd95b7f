package cli

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/internal/environment"
	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/money"
)

// converted is a limit of another service, and its bucket here.
type converted struct {
	Domain      string   `json:"domain"`
	Limit       string   `json:"limit"`
	There       string   `json:"there"`
	Here        string   `json:"here"`
	FirstWindow int64    `json:"first_window,omitempty"` // the most that the first window admits here; there it is the limit
	Notes       []string `json:"notes,omitempty"`
}

// NewConvert returns the command convert.
func NewConvert() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "convert FILE|DIRECTORY...",
		Short: "Show what the limits of envoyproxy/ratelimit and limitador files become",
		Long: `convert reads files of envoyproxy/ratelimit, or of limitador, as serve would, and shows what
each limit becomes. Nothing has to be rewritten: serve reads such files as they are. Keys without
an effect are warnings. The variables of that service count, such as MERGE_DOMAIN_CONFIG.

A window of n becomes a bucket of n that refills over the window. So the first window can admit
up to twice the limit, as there two windows can within a moment; after that it is the same rate.`,
		Example: `  ratelimit convert /data/ratelimit/config
  ratelimit convert limits.yaml -o json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := command.CheckOutput(output); err != nil {
				return err
			}
			variables, err := environment.Read(os.LookupEnv)
			if err != nil {
				return err
			}
			cfg, err := config.Load("", config.Options{Rules: args, AllFiles: true, Defaults: variables.Defaults})
			if err != nil {
				return err
			}
			const everywhere = "%s is set in the environment: it counts for all limits of envoyproxy/ratelimit\n"
			if cfg.Envoyproxy.Shadow {
				cmd.PrintErrf(everywhere, "SHADOW_MODE")
			}
			if cfg.Envoyproxy.Quota {
				cmd.PrintErrf(everywhere, "QUOTA_MODE")
			}
			for _, w := range cfg.Warnings {
				cmd.PrintErrln(w)
			}
			limits := []converted{}
			for _, d := range cfg.Rules.Domains() {
				for _, r := range d.Rules() {
					if c, ok := convert(r); ok {
						limits = append(limits, c)
					}
				}
			}
			return command.WriteOne(cmd.OutOrStdout(), output, convertColumns(), limits, limits)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", command.OutputTable, "table, wide, json or yaml")
	return cmd
}

func convertColumns() []command.Column[converted] {
	return []command.Column[converted]{
		{Title: "DOMAIN", Value: func(c converted) string { return c.Domain }},
		{Title: "LIMIT", Value: func(c converted) string { return c.Limit }},
		{Title: "THERE", Value: func(c converted) string { return c.There }},
		{Title: "HERE", Value: func(c converted) string { return c.Here }},
		{Title: "FIRST WINDOW", Value: func(c converted) string {
			if c.FirstWindow == 0 {
				return "-"
			}
			return "at most " + money.Amount("", c.FirstWindow)
		}},
		{Title: "NOTES", Value: func(c converted) string { return strings.Join(c.Notes, "; ") }},
	}
}

// convert returns the bucket of a rule, and whether the rule is one of another service.
func convert(r *descriptor.Rule) (converted, bool) {
	c := converted{Domain: r.Domain().Name(), Limit: r.Name()}
	if spec, ok := descriptor.CallLimit(r); ok {
		c.bucket(spec.MaxValue, time.Duration(spec.Seconds)*time.Second)
		if len(spec.Variables) > 0 {
			c.note("one for each %s", strings.Join(spec.Variables, ", "))
		}
		for _, condition := range spec.Conditions {
			c.note("if %s", condition)
		}
		return c, true
	}
	of, ok := descriptor.Quote(r)
	if !ok || len(of.Keys) == 0 { // the rule for limits that descriptors bring
		return c, false
	}
	c.Limit = strings.Join(of.Keys, " > ")
	switch {
	case of.Unit > 0:
		c.bucket(int64(of.RequestsPerUnit), of.Unit)
	case of.Name == "" && len(of.Replaces) == 0:
		c.There, c.Here = "no limit", "admits all"
	default:
		c.There, c.Here = "unlimited", "admits all"
	}
	if r.Shadow() {
		c.note("shadow: denies nothing, and adds nothing to usage")
	}
	if of.Quota {
		c.note("quota: denies only with all other quotas of the call")
	}
	if of.Shared {
		c.note("all values of a pattern share it")
	}
	if len(of.Replaces) > 0 {
		c.note("in place of %s", strings.Join(of.Replaces, ", "))
	}
	return c, true
}

func (c *converted) note(format string, args ...any) {
	c.Notes = append(c.Notes, fmt.Sprintf(format, args...))
}

// bucket describes a limit of n in a window, and its bucket.
func (c *converted) bucket(n int64, window time.Duration) {
	c.There = money.Grouped(fmt.Sprintf("%d in %s", n, shortTime(window)))
	if n == 0 {
		c.Here = "denies everything"
		return
	}
	c.FirstWindow = 2 * n
	if every := window / time.Duration(n); every >= time.Millisecond {
		c.Here = money.Grouped(fmt.Sprintf("%d, and one more every %s", n, shortTime(every.Round(time.Millisecond))))
		return
	}
	c.Here = money.Grouped(fmt.Sprintf("%d, and %d more a second", n, n/int64(window/time.Second)))
}

// shortTime writes a time for people: 1m30s, 24h.
func shortTime(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
