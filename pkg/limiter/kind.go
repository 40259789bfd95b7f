package limiter

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// MaxKinds is the greatest number of kinds of a [Static].
const MaxKinds = 64

// Kind is the defaults of all entities whose ID begins with Prefix, such as those of user/. An entity may
// be of several kinds: that with the longest prefix comes first.
type Kind struct {
	Prefix string             // "" = every entity
	Plan   string             // of entities without one, after the kind's Limits; "" = that of the next kind
	Limits map[string]*Limits // by resource, or DefaultResource
}

// mergedKind is a [Kind] with the limits of less specific ones.
type mergedKind struct {
	prefix string
	plan   string
	before kindLimits // of the kinds up to the one that has the plan
	after  kindLimits // of the others
}

// kindLimits are limits by resource, or [DefaultResource].
type kindLimits struct {
	limits map[string]*Limits
	cut    map[string][]Limit // those beyond [MaxLimits]
}

// kinds are in order of precedence. The last one has nothing, and is that of entities of no other.
type kinds []mergedKind

// newKinds orders kinds, and merges their limits. It refuses, with [ErrInvalid], more than [MaxKinds],
// and a prefix given twice.
func newKinds(all []Kind) (kinds, error) {
	if len(all) > MaxKinds {
		return nil, fmt.Errorf("%w: %d kinds of entities; there are at most %d", ErrInvalid, len(all), MaxKinds)
	}
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b Kind) int { return cmp.Compare(len(b.Prefix), len(a.Prefix)) })
	out := make(kinds, len(sorted)+1)
	for i, k := range sorted {
		var chain []Kind
		for _, less := range sorted[i:] {
			switch {
			case less.Prefix == k.Prefix && len(chain) > 0:
				return nil, fmt.Errorf("%w: the kind %s* is given twice", ErrInvalid, k.Prefix)
			case strings.HasPrefix(k.Prefix, less.Prefix):
				chain = append(chain, less)
			}
		}
		n := 1 + slices.IndexFunc(chain, func(k Kind) bool { return k.Plan != "" })
		out[i] = mergedKind{prefix: k.Prefix, before: joined(chain[:n]), after: joined(chain[n:])}
		if n > 0 {
			out[i].plan = chain[n-1].Plan
		}
	}
	return out, nil
}

// joined merges the limits of kinds, the most specific one first.
func joined(chain []Kind) kindLimits {
	out := kindLimits{make(map[string]*Limits), make(map[string][]Limit)}
	for _, k := range chain {
		for resource := range k.Limits {
			out.limits[resource] = nil
		}
	}
	for resource := range out.limits {
		var all []Limit
		for _, k := range chain {
			all = addMissing(all, k.Limits[resource])
			all = addMissing(all, k.Limits[DefaultResource])
		}
		if len(all) > MaxLimits {
			all, out.cut[resource] = all[:MaxLimits:MaxLimits], all[MaxLimits:]
		}
		if limits, err := NewLimits(all...); err == nil { // always: each limit is one of a valid set
			out.limits[resource] = limits
		}
	}
	return out
}

// addMissing adds the limits whose names are missing.
func addMissing(all []Limit, from *Limits) []Limit {
	for i := range from.Len() {
		l := from.At(i)
		if !slices.ContainsFunc(all, func(have Limit) bool { return have.Name == l.Name }) {
			all = append(all, l)
		}
	}
	return all
}

// of returns the kind of an entity.
func (all kinds) of(entity string) *mergedKind {
	i := 0
	for !strings.HasPrefix(entity, all[i].prefix) {
		i++
	}
	return &all[i]
}

// of returns the limits for a resource.
func (l *kindLimits) of(resource string) *Limits {
	if limits, ok := l.limits[resource]; ok {
		return limits
	}
	return l.limits[DefaultResource]
}

// cutOf returns the limits for a resource that have no room.
func (l *kindLimits) cutOf(resource string) []Limit {
	if _, ok := l.limits[resource]; ok {
		return l.cut[resource]
	}
	return l.cut[DefaultResource]
}
