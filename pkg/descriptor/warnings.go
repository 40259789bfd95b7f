package descriptor

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Warnings returns what is legal and probably not meant: a rule that can never
// match, a rule that does nothing yet, a shadow rule that takes nothing, a
// consumed limit that no plan has. The time grows with the square of the number
// of rules in a domain; it is for a check, and for once a reload.
func (r *Rules) Warnings() []Problem {
	var found []Problem
	for _, d := range r.Domains() {
		for _, rule := range d.rules {
			if rule.leaf != nil {
				found = rule.leaf.warn(found, rule)
				continue
			}
			found = rule.warn(found, r)
		}
	}
	return found
}

func (r *Rule) warn(found []Problem, rules *Rules) []Problem {
	for _, earlier := range r.domain.rules[:r.order] {
		if !earlier.shadow && earlier.covers(r) {
			found = append(found, Problem{Path: r.path, Text: fmt.Sprintf(
				"can never match: %s (rule %q) stands before it and matches every descriptor that it would; put it first or leave it out", earlier.path, earlier.name)})
			break
		}
	}
	const later = "reservations are not settled by this version: a reserve rule takes its amounts, a settle rule admits and books nothing"
	if r.settle {
		found = append(found, Problem{Path: r.path + ".settle", Text: later})
	}
	if r.shadow && len(r.takes) == 0 {
		found = append(found, Problem{Path: r.path + ".mode", Text: "a shadow rule that takes nothing has no effect; leave the rule out or let it consume"})
	}
	for i := range r.takes {
		t := &r.takes[i]
		if t.reserve {
			found = append(found, Problem{Path: t.path + ".reserve", Text: later})
		}
		if len(t.plan.parts) == 0 {
			continue
		}
		for _, s := range t.consume {
			if !rules.inSomePlan(s.Limit) {
				found = append(found, Problem{Path: t.path + ".limits", Text: fmt.Sprintf(
					"no plan has the limit %q that the rule consumes; where no parent has it either, the descriptor is denied", s.Limit)})
			}
		}
	}
	return found
}

func (l *leaf) warn(found []Problem, r *Rule) []Problem {
	if l.quota {
		found = append(found, Problem{Path: r.path + ".quota_mode", Text: "has no effect: the limit denies like any other"})
	}
	return found
}

func (r *Rules) inSomePlan(limit string) bool {
	for _, plan := range r.plans {
		if plan.Find(limit) >= 0 {
			return true
		}
	}
	return false
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
			// other does not ask for the key: it may be absent, or there with any
			// value when other is open.
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
