package limiter

import (
	"slices"
	"strings"
)

// Dropped returns the limits for which the ordinary bucket of an entity and a resource has no room, by name: a bucket
// has at most [MaxLimits], and the least specific ones are left out. No records but the given ones are stored.
func (s *Snapshot) Dropped(entity, resource string, stored ...Stored) []EffectiveLimit {
	var sc scratch
	sc.addRefs(entity, resource)
	records := make([]Record, len(sc.refs))
	for _, given := range stored {
		if i := slices.Index(sc.refs, given.Ref); i >= 0 {
			records[i] = given.Record
		}
	}
	file := s.static.Entities[entity]
	s.ordinary(&sc.places, &level{entity: entity}, &file, resource, records)
	return s.dropped(&sc.places, entity, resource)
}

// dropped returns the limits of ordinary places that have no room.
func (s *Snapshot) dropped(p *places, entity, resource string) []EffectiveLimit {
	if p.n == 0 {
		return nil
	}
	inForce, tried := p.mergers(false)
	if slices.ContainsFunc(p.all[:p.n], func(at place) bool { return at.source == SourceKindConfig }) {
		kind := s.kinds.of(entity)
		for _, l := range slices.Concat(kind.before.cutOf(resource), kind.after.cutOf(resource)) {
			to := &inForce
			if of := TriedBeside(l.Name); of != "" {
				to, l.Name = &tried, of
			}
			if by := to.sources[l.Name]; by == SourceNone || by > SourceKindConfig {
				to.drop(l, SourceKindConfig)
			}
		}
	}
	for _, l := range tried.dropped {
		l.Limit.Name = ShadowName(l.Limit.Name)
		inForce.dropped = append(inForce.dropped, l)
	}
	slices.SortFunc(inForce.dropped, func(a, b EffectiveLimit) int { return strings.Compare(a.Limit.Name, b.Limit.Name) })
	return inForce.dropped
}

// drop notes a limit that has no room, at its most specific place.
func (m *merger) drop(l Limit, source Source) {
	if !slices.ContainsFunc(m.dropped, func(have EffectiveLimit) bool { return have.Limit.Name == l.Name }) {
		m.dropped = append(m.dropped, EffectiveLimit{Limit: l, Source: source})
	}
}
