package descriptor

import (
	"net/netip"
	"slices"
	"strings"
)

// matches reports whether the rule matches. Each of its keys must be there, with a value that its
// pattern matches; only an optional key may be absent. Unless the rule is open, there must be no
// other key.
func (r *Rule) matches(v *view) bool {
	i, n := 0, len(v.keys)
	for j := range r.patterns {
		p := &r.patterns[j]
		for i < n && v.keys[i].id < p.key {
			if !r.open {
				return false
			}
			i++
		}
		there, ok := false, false
		for ; i < n && v.keys[i].id == p.key; i++ {
			there = true
			ok = ok || p.matches(v.value(i))
		}
		if !ok && (there || !p.optional) {
			return false
		}
	}
	return r.open || i == n
}

// covers reports whether r surely matches every descriptor that other matches.
func (r *Rule) covers(other *Rule) bool {
	if other.open && !r.open {
		return false
	}
	i := 0 // in other.patterns, which are in the same order
	for j := range r.patterns {
		p := &r.patterns[j]
		for ; i < len(other.patterns) && other.patterns[i].key < p.key; i++ {
			if !r.open {
				return false
			}
		}
		if i == len(other.patterns) || other.patterns[i].key != p.key {
			// other has no pattern for the key: it may be absent, or have any value if other is
			// open.
			if !p.optional || other.open && p.kind != anyValue {
				return false
			}
			continue
		}
		q := &other.patterns[i]
		i++
		if q.optional && !p.optional || !p.covers(q) {
			return false
		}
	}
	return r.open || i == len(other.patterns)
}

// covers reports whether p surely matches every value that other matches.
func (p *pattern) covers(other *pattern) bool {
	switch {
	case p.kind == anyValue:
		return true
	case other.kind == exactValue:
		return p.matches(other.text)
	case other.kind == listValue:
		return p.coversAll(other.list)
	case p.kind == listValue:
		return slices.ContainsFunc(p.list.patterns, func(of pattern) bool { return of.covers(other) })
	case p.kind != other.kind:
		return false
	case p.kind == globValue:
		if len(p.parts) == 2 && p.parts[1] == "" { // a prefix
			return strings.HasPrefix(other.parts[0], p.parts[0])
		}
		return slices.Equal(p.parts, other.parts)
	case p.kind == cidrValue:
		return !slices.ContainsFunc(other.blocks, func(inner netip.Prefix) bool {
			return !slices.ContainsFunc(p.blocks, func(outer netip.Prefix) bool {
				return outer.Bits() <= inner.Bits() && outer.Contains(inner.Addr())
			})
		})
	default:
		return p.text == other.text
	}
}

// coversAll reports whether p surely matches every value that one of the texts matches.
func (p *pattern) coversAll(texts *values) bool {
	for name := range texts.names {
		if !p.matches(name) {
			return false
		}
	}
	for i := range texts.patterns {
		if !p.covers(&texts.patterns[i]) {
			return false
		}
	}
	return true
}
