package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/pkg/api"
)

// newSwitch returns disable or enable: on says which.
func newSwitch(use, short, long string, on bool) *cobra.Command {
	return newVerb(use, short, long, switchEntity(use, on), switchResource(use, on), switchNamespace(use, on))
}

// NewDisable returns the command disable.
func NewDisable() *cobra.Command {
	return newSwitch("disable", "Deny requests of an entity, for a resource or in a namespace", `disable denies every request that would take from an entity, for a resource, or in a
namespace, and those of children that cascade to the entity. A denial has no retry-after, and
its reason is disabled. Charges and settlements are booked. It is in force
at once on this node, and within 5 seconds on every other one, until enable ends it. It outlives
the deletion of the entity or of limits, and restarts where the store does: in a table and in a
data directory. In a store in memory it ends with the process, and the command says so.`, true)
}

// NewEnable returns the command enable.
func NewEnable() *cobra.Command {
	return newSwitch("enable", "Undo disable", `enable lets requests of an entity, for a resource, or in a namespace be decided again.
Balances are as they were left.`, false)
}

func switchEntity(verb string, on bool) func(*operator) *cobra.Command {
	return func(o *operator) *cobra.Command {
		known := completer{o}.entity
		if !on {
			known = completer{o}.disabled(api.LevelEntity)
		}
		cmd := &cobra.Command{
			Use: "entity ID", Short: title(verb) + " an entity", Args: oneID, ValidArgsFunction: known,
			Example: "  ratelimit " + verb + " entity key/k-123\n  ratelimit " + verb + " entity key/k-123 --reason \"ticket 4711\"",
			RunE: o.here(func(cmd *cobra.Command, args []string, n *api.NamespaceClient) error {
				id := api.Name(args[0])
				return o.flip(cmd, n, on, api.Subject{Entity: id}, "entity "+id.String())
			}),
		}
		o.flipFlags(cmd)
		return cmd
	}
}

func switchResource(verb string, on bool) func(*operator) *cobra.Command {
	return func(o *operator) *cobra.Command {
		known := completer{o}.resource
		if !on {
			known = completer{o}.disabled(api.LevelResource)
		}
		cmd := &cobra.Command{
			Use: "resource NAME", Short: title(verb) + " a resource", Args: oneName("a resource, such as gpt-4"), ValidArgsFunction: known,
			Example: "  ratelimit " + verb + " resource gpt-4",
			RunE: o.here(func(cmd *cobra.Command, args []string, n *api.NamespaceClient) error {
				name := api.Name(args[0])
				return o.flip(cmd, n, on, api.Subject{Resource: name}, "resource "+name.String())
			}),
		}
		o.flipFlags(cmd)
		return cmd
	}
}

func switchNamespace(verb string, on bool) func(*operator) *cobra.Command {
	return func(o *operator) *cobra.Command {
		cmd := &cobra.Command{
			Use: "namespace NAME", Short: title(verb) + " a namespace", Args: oneName("a namespace, such as default"), ValidArgsFunction: completer{o}.namespace,
			Example: "  ratelimit " + verb + " namespace tenant-a",
			RunE: func(cmd *cobra.Command, args []string) error {
				n, err := o.named(cmd, args[0])
				if err != nil {
					return err
				}
				return o.flip(cmd, n, on, api.Subject{}, "namespace "+api.Name(args[0]).String())
			},
		}
		o.flipFlags(cmd)
		return cmd
	}
}

// title is a verb with a capital letter.
func title(verb string) string { return string(verb[0]-'a'+'A') + verb[1:] }

// oneName is for a command that takes one name.
func oneName(of string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 || args[0] == "" {
			return fmt.Errorf("%s needs the name of %s", cmd.CommandPath(), of)
		}
		return nil
	}
}

// flip disables a subject, or enables it.
func (o *operator) flip(cmd *cobra.Command, n *api.NamespaceClient, on bool, of api.Subject, subject string) error {
	flip, state := n.Enable, "enabled"
	if on {
		flip, state = n.Disable, "disabled"
	}
	change, err := flip(cmd.Context(), of, o.options())
	if err != nil {
		return o.refusal(err)
	}
	if change.Result == api.Unchanged {
		state = "was " + state + " already"
	}
	return command.Report(cmd, o.output, subject+" "+state, change)
}

func disabledColumns() []command.Column[api.Disabled] {
	return []command.Column[api.Disabled]{
		{Title: "LEVEL", Value: func(d api.Disabled) string { return string(d.Level) }},
		{Title: "ENTITY", Value: func(d api.Disabled) string { return named(d.Entity) }},
		{Title: "RESOURCE", Value: func(d api.Disabled) string { return named(d.Resource) }},
		{Title: "SINCE", Value: func(d api.Disabled) string { return sinceText(d.Since) }},
		{Title: "BY", Value: func(d api.Disabled) string { return dash(d.By) }},
		{Title: "REASON", Value: func(d api.Disabled) string { return dash(d.Reason) }},
	}
}

// sinceText is a time to the second, or - for none.
func sinceText(at time.Time) string {
	if at.IsZero() {
		return "-"
	}
	return at.UTC().Format(time.RFC3339)
}

func listDisabled(o *operator) *cobra.Command {
	var size int
	cmd := &cobra.Command{
		Use: "disabled", Short: "List disabled entities, resources and namespaces", Args: command.NoArgs,
		Long: `list disabled shows the entities and resources of a namespace that are disabled, and the
namespace itself: since when, by which credential, and the reason that was given.`,
		RunE: o.here(func(cmd *cobra.Command, _ []string, n *api.NamespaceClient) error {
			return writeList(o, cmd.OutOrStdout(), size, disabledColumns(), api.Each(func(p api.Page) (*api.List[api.Disabled], error) {
				return n.ListDisabled(cmd.Context(), p)
			}))
		}),
	}
	sizeFlag(cmd, &size)
	return cmd
}
