package cli

import (
	"context"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/client"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// completionTime bounds how long a shell waits for values.
const completionTime = 2 * time.Second

// completionItems bounds how many records are read for values.
const completionItems = 1000

// completer completes arguments and flags with the names that a service has.
type completer struct{ operator *operator }

// values offers the names that values yields of a service and that begin with the typed text.
func (c completer) values(cmd *cobra.Command, typed string, values func(context.Context, *client.Namespace) iter.Seq2[api.Name, error]) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
	defer cancel()
	n, err := c.operator.inNamespace(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	read := 0
	for name, err := range values(ctx, n) {
		read++
		if err != nil || read > completionItems {
			break
		}
		if strings.HasPrefix(string(name), typed) {
			names = append(names, string(name))
		}
	}
	slices.Sort(names)
	return slices.Compact(names), cobra.ShellCompDirectiveNoFileComp
}

// first is complete for the one argument that a command takes.
func (c completer) first(cmd *cobra.Command, args []string, typed string, values func(context.Context, *client.Namespace) iter.Seq2[api.Name, error]) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return c.values(cmd, typed, values)
}

// entity completes the ID of an entity.
func (c completer) entity(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	return c.first(cmd, args, typed, storedEntities)
}

// storedEntities yields the IDs of entities.
func storedEntities(ctx context.Context, n *client.Namespace) iter.Seq2[api.Name, error] {
	return func(yield func(api.Name, error) bool) {
		for e, err := range client.Each(func(p client.Page) (*api.List[api.Entity], error) {
			p.Size = completionItems
			return n.ListEntities(ctx, "", p)
		}) {
			if !yield(e.ID, err) {
				return
			}
		}
	}
}

// resource completes the name of a resource that has limits, or buckets of the entity
// that the flags name.
func (c completer) resource(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	return c.first(cmd, args, typed, func(ctx context.Context, n *client.Namespace) iter.Seq2[api.Name, error] {
		return func(yield func(api.Name, error) bool) {
			for b, err := range eachBucket(ctx, n, cmd) {
				if err != nil {
					break // of a store that cannot list buckets
				}
				if !yield(b.Resource, nil) {
					return
				}
			}
			for name, err := range storedResources(ctx, n) {
				if !yield(name, err) {
					return
				}
			}
		}
	})
}

// namespace completes the name of a namespace, in any state.
func (c completer) namespace(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	return c.first(cmd, args, typed, func(ctx context.Context, n *client.Namespace) iter.Seq2[api.Name, error] {
		return func(yield func(api.Name, error) bool) {
			for _, f := range []client.NamespaceFilter{{}, {Deleted: true}} {
				for ns, err := range client.Each(func(p client.Page) (*api.List[api.Namespace], error) {
					p.Size = completionItems
					return n.Service().ListNamespaces(ctx, f, p)
				}) {
					if !yield(ns.Name, err) {
						return
					}
				}
			}
		}
	})
}

// storedResources yields the names of resources that have limits.
func storedResources(ctx context.Context, n *client.Namespace) iter.Seq2[api.Name, error] {
	return func(yield func(api.Name, error) bool) {
		for l, err := range eachLimits(ctx, n) {
			if err == nil && (l.Resource == nil || *l.Resource == limiter.DefaultResource) {
				continue
			}
			var name api.Name
			if err == nil {
				name = *l.Resource
			}
			if !yield(name, err) {
				return
			}
		}
	}
}

// completeLimit completes the NAME= of limits of the level that the flags name.
func (f *levelFlags) completeLimit(o *operator, cmd *cobra.Command, typed string) ([]string, cobra.ShellCompDirective) {
	of, err := f.of()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return completer{o}.values(cmd, typed, func(ctx context.Context, n *client.Namespace) iter.Seq2[api.Name, error] {
		return func(yield func(api.Name, error) bool) {
			l, err := n.Limits(ctx, of)
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
	})
}

// eachLimits yields stored limits.
func eachLimits(ctx context.Context, n *client.Namespace) iter.Seq2[api.Limits, error] {
	return client.Each(func(p client.Page) (*api.List[api.Limits], error) {
		p.Size = completionItems
		return n.ListLimits(ctx, client.LimitsFilter{}, p)
	})
}

// eachBucket yields the buckets that the flags entity and resource of a command name: none
// without an entity, since a fleet has millions.
func eachBucket(ctx context.Context, n *client.Namespace, cmd *cobra.Command) iter.Seq2[api.Bucket, error] {
	of := client.LimitsOf{Entity: api.Name(flagOf(cmd, "entity")), Resource: api.Name(flagOf(cmd, "resource"))}
	return func(yield func(api.Bucket, error) bool) {
		if of.Entity == "" {
			return
		}
		for b, err := range client.Each(func(p client.Page) (*api.List[api.Bucket], error) { return n.ListBuckets(ctx, of, p) }) {
			if !yield(b, err) {
				return
			}
		}
	}
}
