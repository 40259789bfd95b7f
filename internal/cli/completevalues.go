package cli

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/ratelimit/ratelimit/pkg/api"
)

// CompleteFiles has a shell offer files for the flags that name one, and directories for
// those of a directory. Other flags and arguments without values of their own get neither.
func CompleteFiles(root *cobra.Command) {
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	for all := root.Commands(); len(all) > 0; {
		cmd := all[0]
		all = append(all[1:], cmd.Commands()...)
		for _, name := range []string{"config", "rules", "filename", "ca", "cert", "key", "token-file"} {
			_ = cmd.RegisterFlagCompletionFunc(name, offerFiles) // where it has the flag
		}
		_ = cmd.MarkFlagDirname("data")
		_ = cmd.MarkPersistentFlagDirname("data")
		for flag, values := range map[string][]string{"draw": {"even", "zipf"}, "store": {"dynamodb", "embedded", "valkey"}} {
			_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)) // the same
		}
	}
}

// entity completes the ID of an entity.
func (c completer) entity(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	return c.first(cmd, args, typed, storedEntities)
}

// resource completes the name of a resource that has limits, or buckets of the entity
// that the flags name.
func (c completer) resource(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	return c.first(cmd, args, typed, func(ctx context.Context, n *api.NamespaceClient, offer func(api.Name)) {
		for b := range eachBucket(ctx, n, cmd) {
			offer(b.Resource)
		}
		storedResources(ctx, n, offer)
	})
}

// namespace completes the name of a namespace, in any state.
func (c completer) namespace(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	return c.first(cmd, args, typed, func(ctx context.Context, n *api.NamespaceClient, offer func(api.Name)) {
		for _, f := range []api.NamespaceFilter{{}, {Deleted: true}} {
			for ns := range listed(func(p api.Page) (*api.List[api.Namespace], error) {
				p.Size = completionItems
				return n.Service.ListNamespaces(ctx, f, p)
			}) {
				offer(ns.Name)
			}
		}
	})
}

// limitName completes the name of a limit: of the buckets that the flags name, else of
// those that are stored.
func (c completer) limitName(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	return c.values(cmd, typed, func(ctx context.Context, n *api.NamespaceClient, offer func(api.Name)) {
		for b := range eachBucket(ctx, n, cmd) {
			for _, l := range b.Limits {
				offer(api.Name(l.Name))
			}
		}
		if flagOf(cmd, "entity") != "" {
			return
		}
		for l := range eachLimits(ctx, n) {
			for name := range l.Limits {
				offer(api.Name(name))
			}
		}
	})
}

// completeLimit completes the name of a limit of the level that the flags name.
func (f *levelFlags) completeLimit(o *operator, cmd *cobra.Command, typed string) ([]string, cobra.ShellCompDirective) {
	of, err := f.of()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return completer{o}.values(cmd, typed, func(ctx context.Context, n *api.NamespaceClient, offer func(api.Name)) {
		l, err := n.Limits(ctx, of)
		if err != nil {
			return
		}
		for name := range l.Limits {
			offer(api.Name(name))
		}
	})
}

// variant completes the variant of a bucket that the flags name, with where its limits are from.
func (c completer) variant(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	return c.values(cmd, typed, func(ctx context.Context, n *api.NamespaceClient, offer func(api.Name)) {
		for b := range eachBucket(ctx, n, cmd) {
			variant := cmp.Or(b.Variant, api.OrdinaryVariant)
			if b.Source != "" {
				variant += "\t" + b.Source
			}
			offer(api.Name(variant))
		}
	})
}

// disabled completes the name of an entity that is disabled, or of a resource.
func (c completer) disabled(level api.Level) completion {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		return c.first(cmd, args, typed, func(ctx context.Context, n *api.NamespaceClient, offer func(api.Name)) {
			for d := range listed(func(p api.Page) (*api.List[api.Disabled], error) { return n.ListDisabled(ctx, p) }) {
				name := d.Entity
				if level == api.LevelResource {
					name = d.Resource
				}
				if d.Level == level && name != nil {
					offer(*name)
				}
			}
		})
	}
}

// subject completes a subject of the audit.
func (c completer) subject(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	return c.first(cmd, args, typed, func(ctx context.Context, n *api.NamespaceClient, offer func(api.Name)) {
		offer(subjectSystem)
		storedResources(ctx, n, func(name api.Name) { offer(subjectResource + name) })
		storedEntities(ctx, n, offer)
	})
}
