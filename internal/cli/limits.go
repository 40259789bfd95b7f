package cli

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// limitRow is one limit of a level, as a table shows it.
type limitRow struct {
	of    *api.Limits
	name  string
	limit api.Limit
}

func (r limitRow) limitName() string { return r.name }

// inherits reports whether names that the level does not have are those of less specific levels.
func (r limitRow) inherits() bool { return r.of.Inherit == nil || *r.of.Inherit }

// limitColumns returns the columns of rows. Budgets, and levels that stand alone, have one where a row has some.
func limitColumns(rows []limitRow) []command.Column[limitRow] {
	columns := []command.Column[limitRow]{
		{Title: "LEVEL", Value: func(r limitRow) string { return string(r.of.Level) }},
		{Title: "ENTITY", Value: func(r limitRow) string { return named(r.of.Entity) }},
		{Title: "RESOURCE", Value: func(r limitRow) string { return named(r.of.Resource) }},
		{Title: "LIMIT", Value: func(r limitRow) string { return dash(r.name) }},
		{Title: "RATE", Limit: limitRow.limitName, Value: func(r limitRow) string { return dash(r.limit.Rate) }},
		{Title: "BURST", Limit: limitRow.limitName, Value: func(r limitRow) string { return orNone(r.limit.Burst) }},
	}
	if slices.ContainsFunc(rows, func(r limitRow) bool { return len(r.limit.Budget) > 0 }) {
		columns = append(columns, command.Column[limitRow]{Title: "BUDGET", Limit: limitRow.limitName, Value: func(r limitRow) string { return dash(strings.Join(r.limit.Budgets(), " ")) }})
	}
	if slices.ContainsFunc(rows, func(r limitRow) bool { return !r.inherits() }) {
		columns = append(columns, command.Column[limitRow]{Title: "INHERIT", Value: func(r limitRow) string { return strconv.FormatBool(r.inherits()) }})
	}
	return append(columns, []command.Column[limitRow]{
		{Title: "MAX DEBT", Limit: limitRow.limitName, Wide: true, Value: func(r limitRow) string {
			if r.limit.MaxDebt == nil {
				return "-"
			}
			return strconv.FormatInt(*r.limit.MaxDebt, 10)
		}},
		{Title: "ON UNAVAILABLE", Wide: true, Value: func(r limitRow) string { return dash(r.of.OnUnavailable) }},
		{Title: "ETAG", Wide: true, Value: func(r limitRow) string { return r.of.ETag }},
	}...)
}

// named is a name that a level may have; one that is empty is shown as "".
func named(n *api.Name) string {
	if n == nil {
		return "-"
	}
	return n.String()
}

// orNone is a number, or - for 0.
func orNone(n int64) string {
	if n == 0 {
		return "-"
	}
	return strconv.FormatInt(n, 10)
}

// rowsOf returns a row for each limit, and one for a level that has a policy alone.
func rowsOf(all []api.Limits) (rows []limitRow) {
	for i := range all {
		of := &all[i]
		for _, name := range slices.Sorted(maps.Keys(of.Limits)) {
			rows = append(rows, limitRow{of, name, of.Limits[name]})
		}
		if len(of.Limits) == 0 {
			rows = append(rows, limitRow{of: of})
		}
	}
	return rows
}

func getLimits(o *operator) *cobra.Command {
	var f levelFlags
	var effective bool
	cmd := &cobra.Command{
		Use: "limits", Short: "Show the limits of one level, or those that decide", Args: command.NoArgs,
		Example: `  ratelimit get limits --system
  ratelimit get limits --entity key/k-123 --resource gpt-4 -o yaml
  ratelimit get limits --entity key/k-123 --resource gpt-4 --effective`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if effective {
				return showEffective(cmd, o, &f)
			}
			l, err := readOne(cmd.Context(), o, f.of, (*api.NamespaceClient).Limits)
			if err != nil {
				return err
			}
			rows := rowsOf([]api.Limits{*l})
			return command.WriteOne(cmd.OutOrStdout(), o.output, limitColumns(rows), rows, l)
		},
	}
	f.flags(cmd)
	cmd.Flags().BoolVar(&effective, "effective", false, "show the limits that decide, stored or in the configuration, and the level that each is from")
	return cmd
}

// showEffective shows the limits that decide for an entity and a resource.
func showEffective(cmd *cobra.Command, o *operator, f *levelFlags) error {
	of, err := f.of()
	if err != nil {
		return err
	}
	n, err := o.inNamespace(cmd.Context())
	if err != nil {
		return err
	}
	list, err := n.Effective(cmd.Context(), of)
	if err != nil {
		return o.refusal(err)
	}
	if err := noteRules(cmd, n, of, beforeEntity(list.Items)); err != nil {
		return o.refusal(err)
	}
	return command.WriteOne(cmd.OutOrStdout(), o.output, effectiveColumns(list.Items), list.Items, list)
}

func listLimits(o *operator) *cobra.Command {
	var entity, resource string
	var entities bool
	cmd := &cobra.Command{
		Use: "limits", Short: "List the stored limits of every level", Args: command.NoArgs,
		Example: `  ratelimit list limits --entities    # the entities that have limits of their own
  ratelimit list limits --resource gpt-4 -o wide`,
		RunE: o.here(func(cmd *cobra.Command, _ []string, n *api.NamespaceClient) error {
			of := api.LimitsFilter{Entity: api.Name(entity), Resource: api.Name(resource), Entities: entities}
			list, err := collect(o, 0, func(p api.Page) (*api.List[api.Limits], error) { return n.ListLimits(cmd.Context(), of, p) })
			if err != nil {
				return err
			}
			rows := rowsOf(list.Items)
			return command.WriteOne(cmd.OutOrStdout(), o.output, limitColumns(rows), rows, list)
		}),
	}
	cmd.Flags().StringVar(&entity, "entity", "", "only limits of this entity")
	cmd.Flags().StringVar(&resource, "resource", "", "only limits for this resource")
	cmd.Flags().BoolVar(&entities, "entities", false, "only limits of entities: those that have limits of their own")
	return cmd
}

// setLimitsFlags are the changes by flags.
type setLimitsFlags struct {
	levelFlags

	replace       bool
	remove        []string
	onUnavailable string
	inherit       bool
	shadow        bool
}

func setLimits(o *operator) *cobra.Command {
	var f setLimitsFlags
	cmd := &cobra.Command{
		Use: "limits [NAME=RATE]...", Short: "Create or change the limits of one level",
		Long: `set limits creates or changes limits of the system, of a resource, or of an entity. Limits
that are not named stay as they are, and are those of less specific levels where this one
does not have them; --replace drops them from the level. RATE is 100/minute, 5/30s or
unlimited, and can be followed by "burst TOKENS", "max_debt TOKENS" and "budget
TOKENS/WINDOW". A WINDOW is hour, day or month; there are events when usage of it reaches
80, 95 and 100 % of the budget. RATE is also a quota, 2_000_000/month calendar Europe/Berlin,
or requests in flight and their longest time, 5 in flight 10m. 5 USD is 5_000_000 tokens. A
limit that is named is set as a whole: parts that are not given go.

With --shadow the limits are tried beside those in force, and deny nothing: rpm is stored as
rpm.shadow. ratelimit top --by shadow shows the entities that would be denied.

The command shows the limits that decide for the subject, before and after, each with the
level that it is from. Those of a rule, or of its plan, come between the levels of an entity:
ratelimit explain shows them.`,
		Example: `  ratelimit set limits --system rpm=600/minute
  ratelimit set limits --resource gpt-4 rpm=60/minute "tpm=40000/minute burst 60000"
  ratelimit set limits --entity org/acme tpm=2000000/minute rpm=unlimited
  ratelimit set limits --entity org/acme "tpm=2000000/minute budget 50000000/month"
  ratelimit set limits --entity org/acme "usd=50 USD/month calendar" "slots=5 in flight 10m"
  ratelimit set limits --entity org/acme --resource gpt-4 --remove rpm
  ratelimit set limits --system --shadow rpm=300/minute     # try a lower limit`,
		ValidArgsFunction: func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
			names, directive := f.completeLimit(o, cmd, typed)
			for i := range names {
				names[i] += "="
			}
			return names, directive | cobra.ShellCompDirectiveNoSpace
		},
		RunE: func(cmd *cobra.Command, args []string) error { return changeLimits(cmd, o, &f, args) },
	}
	f.flags(cmd)
	cmd.Flags().BoolVar(&f.replace, "replace", false, "drop limits of the level that are not named")
	cmd.Flags().StringSliceVar(&f.remove, "remove", nil, "NAME of a limit to drop")
	_ = cmd.RegisterFlagCompletionFunc("remove", func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return f.completeLimit(o, cmd, typed)
	}) // the flag is there
	cmd.Flags().StringVar(&f.onUnavailable, "on-unavailable", "", "of --system: allow, deny or local, the answer while the store does not answer; empty = that of the configuration")
	cmd.Flags().BoolVar(&f.inherit, "inherit", true, "names that the level does not have are those of less specific levels; =false has the level stand alone")
	cmd.Flags().BoolVar(&f.shadow, "shadow", false, "try the named limits beside those in force; they deny nothing. With --remove: drop those that are tried")
	cmd.Flags().BoolVar(&o.isNew, "allow-new", false, allowNewUsage)
	o.changeFlags(cmd)
	return cmd
}

// changeLimits changes limits, of the level as it is when it is read: one that is changed
// meanwhile is not overwritten.
func changeLimits(cmd *cobra.Command, o *operator, f *setLimitsFlags, args []string) error {
	of, err := f.of()
	if err != nil {
		return err
	}
	named, err := parseLimits(args)
	if err != nil {
		return err
	}
	if f.shadow {
		named = f.asShadows(named)
	}
	if len(named)+len(f.remove) == 0 && !cmd.Flags().Changed("on-unavailable") && !cmd.Flags().Changed("inherit") {
		return errors.New(`say which limits, such as rpm=600/minute, "tpm=40000/minute burst 60000", or --remove rpm`)
	}
	n, err := o.inNamespace(cmd.Context())
	if err != nil {
		return err
	}
	stored, err := n.Limits(cmd.Context(), of)
	opts := o.options()
	switch {
	case isNotFound(err):
		stored = &api.Limits{}
		opts.IfNoneMatch = opts.IfMatch == ""
	case err != nil:
		return o.refusal(err)
	case opts.IfMatch == "":
		opts.IfMatch = stored.ETag
	}
	next, err := f.apply(cmd, *stored, named)
	if err != nil {
		return err
	}
	if len(next.Limits) == 0 && next.OnUnavailable == "" && next.Inherit == nil && len(f.remove) > 0 {
		opts.AllowNew = false // it brings no name
		change, err := n.DeleteLimits(cmd.Context(), of, opts)
		return reportLimits(cmd, o, &f.levelFlags, change, err)
	}
	change, err := n.PutLimits(cmd.Context(), of, next, opts)
	if err := reportLimits(cmd, o, &f.levelFlags, change, err); err != nil || f.entity != "" && f.resource != "" { // nothing comes before these
		return err
	}
	return noteRules(cmd, n, of, func(name string) bool { _, there := named[name]; return there })
}

// asShadows has the limits of the flags tried beside those in force.
func (f *setLimitsFlags) asShadows(named map[string]api.Limit) map[string]api.Limit {
	tried := make(map[string]api.Limit, len(named))
	for name, l := range named {
		tried[limiter.ShadowName(name)] = l
	}
	for i := range f.remove {
		f.remove[i] = limiter.ShadowName(f.remove[i])
	}
	return tried
}

// apply returns the limits of a level with the changes of the flags.
func (f *setLimitsFlags) apply(cmd *cobra.Command, l api.Limits, named map[string]api.Limit) (api.Limits, error) {
	l.ETag = ""
	if f.replace || l.Limits == nil {
		l.Limits = make(map[string]api.Limit, len(named))
	}
	for _, name := range f.remove {
		if _, there := l.Limits[name]; !there {
			return l, command.Failed(fmt.Errorf("--remove %s: there is no such limit", name))
		}
		delete(l.Limits, name)
	}
	maps.Copy(l.Limits, named)
	if cmd.Flags().Changed("on-unavailable") {
		l.OnUnavailable = f.onUnavailable
	}
	if cmd.Flags().Changed("inherit") {
		if l.Inherit = nil; !f.inherit {
			l.Inherit = &f.inherit
		}
	}
	return l, nil
}

func deleteLimits(o *operator) *cobra.Command {
	var f levelFlags
	cmd := &cobra.Command{
		Use: "limits", Short: "Delete the limits of one level", Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			of, err := f.of()
			if err != nil {
				return err
			}
			n, err := o.confirmed(cmd, "the "+f.subject())
			if err != nil {
				return err
			}
			change, err := n.DeleteLimits(cmd.Context(), of, o.options())
			return reportLimits(cmd, o, &f, change, err)
		},
	}
	f.flags(cmd)
	o.deleteFlags(cmd)
	return cmd
}
