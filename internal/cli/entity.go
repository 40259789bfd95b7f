package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ratelimit/ratelimit/internal/cli/manifest"
	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/pkg/api"
)

func entityColumns() []command.Column[api.Entity] {
	return []command.Column[api.Entity]{
		{Title: "ID", Value: func(e api.Entity) string { return e.ID.String() }},
		{Title: "PARENT", Value: func(e api.Entity) string { return orDash(e.Parent) }},
		{Title: "CASCADE", Value: func(e api.Entity) string { return strconv.FormatBool(e.Cascade) }},
		{Title: "PLAN", Value: func(e api.Entity) string { return dash(e.Plan) }},
		{Title: "NAME", Value: func(e api.Entity) string { return dash(e.Name) }},
		{Title: "CREATED", Wide: true, Value: func(e api.Entity) string { return e.CreatedAt.UTC().Format(time.RFC3339) }},
		{Title: "ETAG", Wide: true, Value: func(e api.Entity) string { return e.ETag }},
		{Title: "METADATA", Wide: true, Value: func(e api.Entity) string { return pairs(e.Metadata) }},
	}
}

// orDash is a name, or - for none.
func orDash(n api.Name) string {
	if n == "" {
		return "-"
	}
	return n.String()
}

// dash is plain text, or - for none.
func dash(s string) string { return orDash(api.Name(s)) }

// pairs writes a map as key=value, in order.
func pairs(m map[string]string) string {
	all := make([]string, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		all = append(all, api.Name(k+"="+m[k]).String())
	}
	return dash(strings.Join(all, ","))
}

// oneID is for a command that takes the ID of an entity.
func oneID(cmd *cobra.Command, args []string) error {
	if len(args) != 1 || args[0] == "" {
		return fmt.Errorf("%s needs the ID of one entity, such as key/k-123", cmd.CommandPath())
	}
	return nil
}

func getEntity(o *operator) *cobra.Command {
	return &cobra.Command{
		Use: "entity ID", Short: "Show an entity", Args: oneID, ValidArgsFunction: completer{o}.entity,
		RunE: o.here(func(cmd *cobra.Command, args []string, n *api.NamespaceClient) error {
			e, err := n.Entity(cmd.Context(), api.Name(args[0]))
			if err == nil && e.PlanUnknown {
				cmd.PrintErrln("note: " + unknownPlan(e))
			}
			return show(cmd, o, entityColumns(), e, err)
		}),
	}
}

// unknownPlan says that the plan of an entity has no effect.
func unknownPlan(e *api.Entity) string {
	return fmt.Sprintf("entity %s has the plan %s, which the configuration in force does not have: limits of other levels count in its place", e.ID, api.Name(e.Plan))
}

func listEntities(o *operator) *cobra.Command {
	var parent string
	var size int
	cmd := &cobra.Command{
		Use: "entities", Short: "List entities", Args: command.NoArgs,
		RunE: o.here(func(cmd *cobra.Command, _ []string, n *api.NamespaceClient) error {
			return writeList(o, cmd.OutOrStdout(), size, entityColumns(), api.Each(func(p api.Page) (*api.List[api.Entity], error) {
				list, err := n.ListEntities(cmd.Context(), api.Name(parent), p)
				if err == nil && parent == "" { // else they are asked for
					list.Items = slices.DeleteFunc(list.Items, func(e api.Entity) bool { return manifest.IsInventory(string(e.ID)) })
				}
				return list, err
			}))
		}),
	}
	cmd.Flags().StringVar(&parent, "parent", "", "only children of this entity")
	sizeFlag(cmd, &size)
	return cmd
}

func sizeFlag(cmd *cobra.Command, size *int) {
	cmd.Flags().IntVar(size, "size", 0, "show at most so many; 0 = all")
}

// entityFlags are the fields of an entity.
type entityFlags struct {
	name, parent, plan string
	cascade            bool
	metadata           map[string]string
}

func setEntity(o *operator) *cobra.Command {
	var f entityFlags
	cmd := &cobra.Command{
		Use: "entity ID", Short: "Create or change an entity", Args: oneID, ValidArgsFunction: completer{o}.entity,
		Long: `set entity creates an entity, or changes the fields whose flags are given. An empty
value removes a field.`,
		Example: `  ratelimit set entity org/acme --name "Acme Inc."
  ratelimit set entity key/k-123 --parent org/acme --cascade
  ratelimit set entity org/acme --plan pro`,
		RunE: o.here(func(cmd *cobra.Command, args []string, n *api.NamespaceClient) error {
			return o.setEntity(cmd, n, api.Name(args[0]), &f)
		}),
	}
	cmd.Flags().StringVar(&f.name, "name", "", "name for people")
	cmd.Flags().StringVar(&f.parent, "parent", "", "ID of the parent")
	cmd.Flags().StringVar(&f.plan, "plan", "", "name of the plan of the configuration whose limits it has")
	cmd.Flags().BoolVar(&o.isNew, "allow-new", false, allowNewUsage)
	cmd.Flags().BoolVar(&f.cascade, "cascade", false, "the parent consumes what the entity consumes")
	cmd.Flags().StringToStringVar(&f.metadata, "metadata", nil, "KEY=VALUE to keep with the entity, not interpreted")
	o.changeFlags(cmd)
	return cmd
}

// setEntity changes the fields that are given, of the entity as it is when it is read: one that
// is changed meanwhile is not overwritten.
func (o *operator) setEntity(cmd *cobra.Command, n *api.NamespaceClient, id api.Name, f *entityFlags) error {
	e, opts, err := o.currentEntity(cmd.Context(), n, id)
	if err != nil {
		return err
	}
	f.apply(cmd, e)
	change, err := n.PutEntity(cmd.Context(), *e, opts)
	return reportLimiting(cmd, o, "entity "+id.String(), "entity "+id.String()+", for a resource without its own", change, err)
}

// currentEntity returns an entity as it is stored, and the options of a change to it alone.
func (o *operator) currentEntity(ctx context.Context, n *api.NamespaceClient, id api.Name) (*api.Entity, api.ClientOptions, error) {
	opts := o.options()
	e, err := n.Entity(ctx, id)
	switch {
	case isNotFound(err):
		opts.IfNoneMatch = opts.IfMatch == ""
		return &api.Entity{ID: id}, opts, nil
	case err != nil:
		return nil, opts, o.refusal(err)
	case opts.IfMatch == "":
		opts.IfMatch = e.ETag
	}
	e.ETag, e.PlanUnknown = "", false
	return e, opts, nil
}

// apply sets the fields whose flags are given.
func (f *entityFlags) apply(cmd *cobra.Command, e *api.Entity) {
	if cmd.Flags().Changed("name") {
		e.Name = f.name
	}
	if cmd.Flags().Changed("parent") {
		e.Parent = api.Name(f.parent)
	}
	if cmd.Flags().Changed("plan") {
		e.Plan = f.plan
	}
	if cmd.Flags().Changed("cascade") {
		e.Cascade = f.cascade
	}
	for key, value := range f.metadata {
		if e.Metadata == nil {
			e.Metadata = map[string]string{}
		}
		e.Metadata[key] = value
		if value == "" {
			delete(e.Metadata, key)
		}
	}
}

// noteChildren notes that a deleted entity goes on as the parent of others, without limits of its own.
func noteChildren(cmd *cobra.Command, n *api.NamespaceClient, id api.Name) {
	const most = 3
	children, err := n.ListEntities(cmd.Context(), id, api.Page{Size: most + 1})
	if err != nil || len(children.Items) == 0 { // the command has its answer already
		return
	}
	names := make([]string, 0, most+1)
	for _, e := range children.Items[:min(most, len(children.Items))] {
		names = append(names, e.ID.String())
	}
	if len(children.Items) > most {
		names = append(names, "…")
	}
	cmd.PrintErrf("note: it still is the parent of %s: those that cascade take from it under the limits of the resource or of the system\n", strings.Join(names, ", "))
}

func deleteEntity(o *operator) *cobra.Command {
	cmd := &cobra.Command{
		Use: "entity ID", Short: "Delete an entity and its limits", Args: oneID, ValidArgsFunction: completer{o}.entity,
		RunE: func(cmd *cobra.Command, args []string) error {
			id := api.Name(args[0])
			n, err := o.confirmed(cmd, "entity "+id.String()+" and its limits")
			if err != nil {
				return err
			}
			change, err := n.DeleteEntity(cmd.Context(), id, o.options())
			if err == nil {
				noteChildren(cmd, n, id)
			}
			return report(cmd, o, "entity "+id.String(), change, err)
		},
	}
	o.deleteFlags(cmd)
	return cmd
}
