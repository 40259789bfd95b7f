package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/money"
)

func effectiveName(l api.EffectiveLimit) string { return l.Name }

// effectiveColumns are those of the limits that decide. Budgets have one where a limit has some.
func effectiveColumns(all []api.EffectiveLimit) []command.Column[api.EffectiveLimit] {
	columns := []command.Column[api.EffectiveLimit]{
		{Title: "LIMIT", Value: effectiveName},
		{Title: "RATE", Limit: effectiveName, Value: func(l api.EffectiveLimit) string { return l.Limit.Rate }},
		{Title: "BURST", Limit: effectiveName, Value: func(l api.EffectiveLimit) string { return orNone(l.Limit.Burst) }},
	}
	if slices.ContainsFunc(all, func(l api.EffectiveLimit) bool { return len(l.Limit.Budget) > 0 }) {
		columns = append(columns, command.Column[api.EffectiveLimit]{Title: "BUDGET", Limit: effectiveName, Value: func(l api.EffectiveLimit) string { return dash(strings.Join(l.Limit.Budgets(), " ")) }})
	}
	return append(columns, command.Column[api.EffectiveLimit]{Title: "FROM", Value: func(l api.EffectiveLimit) string { return l.Source }})
}

// effectiveLines writes the limits that decide, before and after a change, a line each. Those that do not
// change are left out with changed.
func effectiveLines(e *api.Effective, changed bool) string {
	if e == nil {
		return ""
	}
	text := func(all []api.EffectiveLimit) map[string]string {
		out := make(map[string]string, len(all))
		for _, l := range all {
			out[l.Name] = money.Amounts(l.Name, l.Limit.String()) + ", " + l.Source
		}
		return out
	}
	before, after := text(e.Before), text(e.After)
	all := maps.Clone(before)
	maps.Copy(all, after)
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		was, is := before[name], after[name]
		switch {
		case was == is && !changed:
			fmt.Fprintf(&out, "  %s: %s\n", name, is)
		case was == is:
		case was == "":
			fmt.Fprintf(&out, "  %s: none -> %s\n", name, is)
		case is == "":
			fmt.Fprintf(&out, "  %s: %s -> none\n", name, was)
		default:
			fmt.Fprintf(&out, "  %s: %s -> %s\n", name, was, is)
		}
	}
	return out.String()
}

// reportLimits writes the outcome of a change of a level.
func reportLimits(cmd *cobra.Command, o *operator, f *levelFlags, change *api.LimitsChange, err error) error {
	return reportLimiting(cmd, o, f.subject(), f.decided(), change, err)
}

// reportLimiting writes the outcome of a change, with the limits of decided before and after it.
func reportLimiting[V any](cmd *cobra.Command, o *operator, subject, decided string, change *api.LimitingChange[V], err error) error {
	if err != nil {
		return o.refusal(err)
	}
	if change.InMemory && change.Result != api.Unchanged {
		command.NoteMemory(cmd)
	}
	if o.output == command.OutputJSON || o.output == command.OutputYAML {
		return command.WriteOne[any](cmd.OutOrStdout(), o.output, nil, nil, change)
	}
	text := subject + " " + string(change.Result) + command.DryText(change.DryRun) + "\n"
	if lines := effectiveLines(change.Effective, false); lines != "" {
		text += "limits of " + decided + ":\n" + lines
	}
	_, err = io.WriteString(cmd.OutOrStdout(), text)
	return command.Failed(err)
}

// decided says for people whose limits the level decides.
func (f *levelFlags) decided() string {
	entity, resource := "an entity without its own", "a resource without its own"
	if f.entity != "" {
		entity = "entity " + api.Name(f.entity).String()
	}
	if f.resource != "" {
		resource = "resource " + api.Name(f.resource).String()
	}
	return entity + ", for " + resource
}

// beforeEntity returns which names of limits a rule of its own can decide: all but those that an entity has for
// the resource.
func beforeEntity(all []api.EffectiveLimit) func(name string) bool {
	exact := make(map[string]bool)
	for _, l := range all {
		if strings.HasPrefix(l.Source, "entity (") {
			exact[l.Name] = true
		}
	}
	return func(name string) bool { return !exact[name] }
}
