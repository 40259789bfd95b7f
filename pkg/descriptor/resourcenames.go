package descriptor

import (
	"maps"
	"slices"
)

// ResourceNames are the resources that the rules of a namespace can take from.
type ResourceNames struct {
	// Names are those that rules write, in order.
	Names []string
	// Any says that a rule takes from resources of any name.
	Any bool
	// Ruled says that there is a rule for the namespace.
	Ruled bool

	listed []*resources
}

// Has reports whether a rule writes the name, or lists it.
func (n *ResourceNames) Has(name string) bool {
	if _, found := slices.BinarySearch(n.Names, name); found {
		return true
	}
	return slices.ContainsFunc(n.listed, func(l *resources) bool {
		_, ok := l.match(name)
		return ok
	})
}

// Open reports whether any name may be that of a resource: a rule takes from any, or no rule of this service takes.
func (n *ResourceNames) Open() bool { return n.Any || len(n.Names)+len(n.listed) == 0 }

// ResourceNames returns the resources that the rules of a namespace can take from, and others.
func (r *Rules) ResourceNames(namespace string, others ...string) *ResourceNames {
	found, names := new(ResourceNames), make(map[string]bool)
	for _, name := range others {
		names[name] = true
	}
	for _, d := range r.Domains() {
		if d.namespace != namespace {
			continue
		}
		found.Ruled = true
		found.Any = found.Any || d.OfFile() || d.OfLimits()
		for _, rule := range d.rules {
			for i := range rule.takes {
				switch t := &rule.takes[i]; {
				case t.resource.isLiteral():
					names[t.resource.parts[0].text] = true
				case t.listed == nil:
					found.Any = true
				default:
					found.listed = append(found.listed, t.listed)
					maps.Copy(names, t.listed.names)
					names[OtherResource] = true
				}
			}
		}
	}
	found.Names = slices.Sorted(maps.Keys(names))
	return found
}
