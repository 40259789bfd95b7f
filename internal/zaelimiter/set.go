package zaelimiter

import (
	"fmt"
	"maps"
	"slices"

	"github.com/ratelimit/ratelimit/internal/migration"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// set returns the content of the table as a checked set.
func (r *reader) set(o Options) (*migration.Set, error) {
	set := &migration.Set{}
	now := o.Now.UnixMilli()
	for id, s := range r.spaces {
		name, found := r.name(id)
		if !found {
			r.orphans += len(s.records) + len(s.buckets)
			continue
		}
		if o.Namespace != "" && name != o.Namespace {
			continue
		}
		if o.As != "" {
			name = o.As
		}
		ns := migration.Namespace{Name: name, Records: s.records}
		for b, state := range s.buckets {
			if balance, used := state.balance(b.entity, b.resource, now); used {
				ns.Balances = append(ns.Balances, balance)
			}
		}
		for _, l := range s.losses {
			l.Namespace = name
			set.Losses = append(set.Losses, l)
		}
		set.Namespaces = append(set.Namespaces, ns)
	}
	if o.Namespace != "" && len(set.Namespaces) == 0 && !slices.Contains(r.titles(), o.Namespace) {
		return nil, fmt.Errorf("%w: it has no namespace %.100q; it has %.200q", ErrTable, o.Namespace, r.titles())
	}
	set.Ignored = []migration.Count{
		{Kind: "windows of usage", N: r.usage},
		{Kind: "audit events", N: r.audit},
		{Kind: "records of deleted namespaces", N: r.orphans},
		{Kind: "items of an unknown kind", N: r.unknown},
	}
	set.Ignored = slices.DeleteFunc(set.Ignored, func(c migration.Count) bool { return c.N == 0 })
	set.Check()
	return set, nil
}

// name returns the name of a namespace. Where no namespace is registered as default, items
// behind that word as an id are its, or else items without a namespace.
func (r *reader) name(id string) (string, bool) {
	if name := r.names[id]; name != "" {
		return name, true
	}
	if id != "" && id != limiter.DefaultNamespace {
		return "", false
	}
	for _, name := range r.names {
		if name == limiter.DefaultNamespace {
			return "", false
		}
	}
	return limiter.DefaultNamespace, id != "" || r.spaces[limiter.DefaultNamespace] == nil
}

// titles are the names of all namespaces.
func (r *reader) titles() []string {
	all := map[string]bool{}
	for _, name := range r.names {
		all[name] = true
	}
	for id := range r.spaces {
		if name, found := r.name(id); found {
			all[name] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}
