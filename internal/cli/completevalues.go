package cli

import (
	"cmp"
	"context"
	"iter"

	"github.com/spf13/cobra"

	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/client"
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
		for flag, values := range map[string][]string{"draw": {"even", "zipf"}, "store": {"dynamodb", "embedded"}} {
			_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)) // the same
		}
	}
}

// limitName completes the name of a limit: of the buckets that the flags name, else of
// those that are stored.
func (c completer) limitName(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	return c.values(cmd, typed, func(ctx context.Context, n *client.Namespace) iter.Seq2[api.Name, error] {
		return func(yield func(api.Name, error) bool) {
			for b, err := range eachBucket(ctx, n, cmd) {
				if err != nil {
					break // of a store that cannot list buckets
				}
				for _, l := range b.Limits {
					if !yield(api.Name(l.Name), nil) {
						return
					}
				}
			}
			if flagOf(cmd, "entity") != "" {
				return
			}
			for l, err := range eachLimits(ctx, n) {
				if err != nil {
					yield("", err)
					return
				}
				for name := range l.Limits {
					if !yield(api.Name(name), nil) {
						return
					}
				}
			}
		}
	})
}

// variant completes the variant of a bucket that the flags name, with where its limits are from.
func (c completer) variant(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	return c.values(cmd, typed, func(ctx context.Context, n *client.Namespace) iter.Seq2[api.Name, error] {
		return func(yield func(api.Name, error) bool) {
			for b, err := range eachBucket(ctx, n, cmd) {
				variant := api.Name(cmp.Or(b.Variant, api.OrdinaryVariant))
				if b.Source != "" {
					variant += api.Name("\t" + b.Source)
				}
				if !yield(variant, err) {
					return
				}
			}
		}
	})
}

// disabled completes the name of an entity that is disabled, or of a resource.
func (c completer) disabled(level api.Level) completion {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		return c.first(cmd, args, typed, func(ctx context.Context, n *client.Namespace) iter.Seq2[api.Name, error] {
			return func(yield func(api.Name, error) bool) {
				for d, err := range client.Each(func(p client.Page) (*api.List[api.Disabled], error) { return n.ListDisabled(ctx, p) }) {
					name := d.Entity
					if level == api.LevelResource {
						name = d.Resource
					}
					if err == nil && (d.Level != level || name == nil) {
						continue
					}
					if err != nil {
						yield("", err)
						return
					}
					if !yield(*name, nil) {
						return
					}
				}
			}
		})
	}
}

// subject completes a subject of the audit.
func (c completer) subject(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	return c.first(cmd, args, typed, func(ctx context.Context, n *client.Namespace) iter.Seq2[api.Name, error] {
		return func(yield func(api.Name, error) bool) {
			if !yield(subjectSystem, nil) {
				return
			}
			for name, err := range storedResources(ctx, n) {
				if !yield(subjectResource+name, err) {
					return
				}
			}
			for name, err := range storedEntities(ctx, n) {
				if !yield(name, err) {
					return
				}
			}
		}
	})
}
