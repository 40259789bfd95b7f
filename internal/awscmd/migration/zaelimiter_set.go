package migration

import (
	"fmt"
	"maps"
	"slices"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// set returns the content of the table as a checked set.
func (r *reader) set(o ReadOptions) (*Set, error) {
	set := &Set{}
	now := o.Now.UnixMilli()
	for _, id := range slices.Sorted(maps.Keys(r.spaces)) {
		s := r.spaces[id]
		name, problem := r.name(id)
		switch {
		case r.deleted[id]:
			r.orphans += s.size()
			continue
		case id == "" && problem != "":
			r.outdated += s.size()
			continue
		case o.Namespace != "" && name != o.Namespace:
			continue
		case problem != "":
			set.Losses = append(set.Losses, Loss{Subject: fmt.Sprintf("the namespace with id %.100q", id), Problem: fmt.Sprintf("is left out (records and buckets: %d): %s", s.size(), problem)})
			continue
		}
		if o.As != "" {
			name = o.As
		}
		ns := Namespace{Name: name, Records: s.records}
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
	set.Ignored = []Count{
		{Kind: "windows of usage", N: r.usage},
		{Kind: "audit events", N: r.audit},
		{Kind: "records of deleted namespaces", N: r.orphans},
		{Kind: "records and buckets of before an upgrade of the table", N: r.outdated},
		{Kind: fmt.Sprintf("items of an unknown kind, the first with the key %.100q", r.unknownKey), N: r.unknown},
	}
	set.Ignored = slices.DeleteFunc(set.Ignored, func(c Count) bool { return c.N == 0 })
	set.Check()
	return set, nil
}

// size counts the records and balances of a namespace.
func (s *space) size() int { return len(s.records) + len(s.buckets) }

// name returns the name of a namespace, "" for none, and why it cannot be taken over, "" if it
// can. Where no namespace is registered as default, items behind that word as an id are its, or
// else items without a namespace.
func (r *reader) name(id string) (name, problem string) {
	name, registered := r.names[id]
	switch {
	case registered && name == "":
		return "", "the table has no name for it: namespace_name must be a text"
	case registered && r.count(name) > 1:
		return name, fmt.Sprintf("another one has its name %.100q, too", name)
	case registered:
		return name, ""
	case id != "" && id != limiter.DefaultNamespace || r.count(limiter.DefaultNamespace) > 0:
		return "", "the table does not register it"
	case id == "" && r.spaces[limiter.DefaultNamespace] != nil:
		return "", "it is of before an upgrade"
	}
	return limiter.DefaultNamespace, ""
}

// count counts the namespaces of a name.
func (r *reader) count(name string) (n int) {
	for _, other := range r.names {
		if other == name {
			n++
		}
	}
	return n
}

// titles are the names of all namespaces.
func (r *reader) titles() []string {
	all := map[string]bool{}
	for _, name := range r.names {
		all[name] = true
	}
	for id := range r.spaces {
		if name, problem := r.name(id); problem == "" {
			all[name] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}
