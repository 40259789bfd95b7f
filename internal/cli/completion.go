package cli

import (
	"context"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ratelimit/ratelimit/internal/cli/manifest"
	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// completionTime bounds how long a shell waits for values.
const completionTime = 2 * time.Second

// completionItems bounds how many records are read for values.
const completionItems = 1000

// completer completes arguments and flags with the names that a service has.
type completer struct{ operator *operator }

// source offers the names that a service has, as far as it answers.
type source func(ctx context.Context, n *api.NamespaceClient, offer func(api.Name))

// values offers the names of a source that begin with the typed text.
func (c completer) values(cmd *cobra.Command, typed string, from source) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
	defer cancel()
	n, err := c.operator.quietly(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var found []string
	read := 0
	from(ctx, n, func(name api.Name) {
		read++
		switch {
		case read > completionItems:
			cancel() // no page after this one
		case strings.HasPrefix(string(name), typed):
			found = append(found, string(name))
		}
	})
	slices.Sort(found)
	return slices.Compact(found), cobra.ShellCompDirectiveNoFileComp
}

// first is values for the one argument that a command takes.
func (c completer) first(cmd *cobra.Command, args []string, typed string, from source) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return c.values(cmd, typed, from)
}

// listed yields the records of a list up to its end or its first error: a store may list limits and
// no buckets.
func listed[V any](list func(api.Page) (*api.List[V], error)) iter.Seq[V] {
	return func(yield func(V) bool) {
		for v, err := range api.Each(list) {
			if err != nil || !yield(v) {
				return
			}
		}
	}
}

// storedEntities offers the IDs of entities.
func storedEntities(ctx context.Context, n *api.NamespaceClient, offer func(api.Name)) {
	for e := range listed(func(p api.Page) (*api.List[api.Entity], error) {
		p.Size = completionItems
		return n.ListEntities(ctx, "", p)
	}) {
		if !manifest.IsInventory(string(e.ID)) {
			offer(e.ID)
		}
	}
}

// storedResources offers the names of resources that have limits.
func storedResources(ctx context.Context, n *api.NamespaceClient, offer func(api.Name)) {
	for l := range eachLimits(ctx, n) {
		if l.Resource != nil && *l.Resource != limiter.DefaultResource {
			offer(*l.Resource)
		}
	}
}

// eachLimits yields stored limits.
func eachLimits(ctx context.Context, n *api.NamespaceClient) iter.Seq[api.Limits] {
	return listed(func(p api.Page) (*api.List[api.Limits], error) {
		p.Size = completionItems
		return n.ListLimits(ctx, api.LimitsFilter{}, p)
	})
}

// eachBucket yields the buckets that the flags entity and resource of a command name: none
// without an entity, since a fleet has millions.
func eachBucket(ctx context.Context, n *api.NamespaceClient, cmd *cobra.Command) iter.Seq[api.Bucket] {
	of := api.LimitsOf{Entity: api.Name(flagOf(cmd, "entity")), Resource: api.Name(flagOf(cmd, "resource"))}
	if of.Entity == "" {
		return func(func(api.Bucket) bool) {}
	}
	return listed(func(p api.Page) (*api.List[api.Bucket], error) { return n.ListBuckets(ctx, of, p) })
}
