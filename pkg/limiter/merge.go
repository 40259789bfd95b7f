package limiter

import (
	"slices"
	"strings"
	"sync"
)

// Limits merge by name: of the places that have a limit of a name, the most specific one decides about
// it. See [Source] for their order. At each place stored limits come before those of the file.
//
// A take's own limits are those of a bucket of its own, which has their names and no others. A limit
// that the take consumes, and that is none of its own, is one of the entity's ordinary bucket.

// place is the limits of one place.
type place struct {
	limits *Limits
	source Source
}

// maxPlaces is how many places may have limits of one bucket.
const maxPlaces = 11

// places are those of one bucket that have limits, the most specific one first.
type places struct {
	all   [maxPlaces]place
	n     int
	alone bool   // the last one stands alone: none comes after it
	given string // name of the limit of the last one that the call itself has; "" = none
}

// reset drops all places.
func (p *places) reset() { p.n, p.alone, p.given = 0, false, "" }

// add adds a place that is less specific than those before.
func (p *places) add(limits *Limits, source Source) {
	if !p.alone && limits.Len() > 0 {
		p.all[p.n] = place{limits, source}
		p.n++
	}
}

// addStored adds the place of a record.
func (p *places) addStored(r *Record, source Source) {
	p.add(r.Limits, source)
	p.alone = p.alone || r.Alone && r.Limits.Len() > 0
}

// besides reports whether a place may have a limit that is asked beside one of another name: a budget, or one
// that is tried.
func (p *places) besides() bool {
	return slices.ContainsFunc(p.all[:p.n], func(at place) bool { return at.limits.Beside() })
}

// addEntityResource adds the limits of a level's entity for its resource. r are the level's records.
func (p *places) addEntityResource(file *StaticEntity, resource string, r []Record) {
	p.addStored(&r[1], SourceEntity)
	p.add(file.limits(resource), SourceEntityConfig)
}

// addEntity adds the limits of a level's entity for all resources.
func (p *places) addEntity(file *StaticEntity, r []Record) {
	p.addStored(&r[2], SourceEntityDefault)
	p.add(file.limits(DefaultResource), SourceEntityDefaultConfig)
}

// ordinary adds the places of the ordinary bucket of a level's entity.
func (s *Snapshot) ordinary(p *places, lv *level, file *StaticEntity, resource string, r []Record) {
	p.addEntityResource(file, resource, r)
	p.addEntity(file, r)
	if len(s.static.Plans) > 0 || len(s.static.Kinds) > 0 {
		kind := s.kinds.of(lv.entity)
		lv.plan = file.planOf(r[0].Entity)
		p.add(s.static.Plans[lv.plan], SourcePlan)
		p.add(kind.before.of(resource), SourceKindConfig)
		if lv.plan == "" {
			lv.plan = kind.plan
			p.add(s.static.Plans[lv.plan], SourcePlan)
		}
		p.add(kind.after.of(resource), SourceKindConfig)
	}
	p.addStored(&r[3], SourceResource)
	if len(s.static.Resources) > 0 {
		p.add(s.static.Resources[resource], SourceResourceConfig)
	}
	p.addStored(&r[4], SourceSystem)
	p.add(s.static.System, SourceSystemConfig)
}

// own adds the places of the bucket of a take's own limits. They end with those.
func (t *Take) own(p *places, file *StaticEntity, r []Record) {
	source := SourceRule
	p.addEntityResource(file, t.Resource, r)
	if t.LimitsBy == ByPlan {
		source = SourcePlan
		p.addEntity(file, r)
	}
	p.alone = false // it stands above levels, and the names are the take's
	p.add(t.Limits, source)
	p.given = t.Given
}

// merged is the limits of one bucket.
type merged struct {
	limits  *Limits
	source  Source   // of all, where sources is nil
	sources []Source // by limit
	apart   *apart   // what the bucket does not have; nil = nothing
}

// apart is the limits of a level that are in no bucket for all time.
type apart struct {
	zeros  []EffectiveLimit // with a rate of 0
	quotas []quotas
	tried  *merged // limits that are tried, by the names of those in force; nil = none
}

// quotas are those of one calendar, or one limit in flight. Each of the windows has a bucket.
type quotas struct {
	windows  *windows
	inWindow merged           // the limits of the bucket of a window
	shown    []EffectiveLimit // the quotas, in the order of those limits; or the limit in flight
}

// find returns the index of a limit in shown, or -1.
func (q *quotas) find(name string) int {
	for i := range q.shown {
		if q.shown[i].Limit.Name == name {
			return i
		}
	}
	return -1
}

// zero returns the limit of the name if its rate is 0, and nil otherwise.
func (m *merged) zero(name string) *EffectiveLimit {
	if m.apart == nil {
		return nil
	}
	for i := range m.apart.zeros {
		if zero := &m.apart.zeros[i]; zero.Limit.Name == name {
			return zero
		}
	}
	return nil
}

// has reports whether there is a limit of the name.
func (m *merged) has(name string) bool {
	return m.limits.Find(name) >= 0 || m.zero(name) != nil || m.quotaOf(name) >= 0
}

// quotaOf returns the index of the quotas that have a limit of the name, or -1.
func (m *merged) quotaOf(name string) int {
	if m.apart == nil {
		return -1
	}
	return slices.IndexFunc(m.apart.quotas, func(q quotas) bool { return q.find(name) >= 0 })
}

// sourceOf returns the place of a limit, by its index.
func (m *merged) sourceOf(i int) Source {
	if m.sources != nil && i >= 0 {
		return m.sources[i]
	}
	return m.source
}

// mergeKey is the content of places: merges of equal content are the same.
type mergeKey struct {
	hashes  [maxPlaces]uint64
	sources [maxPlaces]Source
	given   string
	only    bool
}

// maxMerges is how many of the latest merges are remembered, and at most twice as many in all.
const maxMerges = 1 << 13

// merges remembers merges. It is safe for concurrent use. The zero merges has none.
type merges struct {
	mu     sync.RWMutex
	known  map[mergeKey]merged
	before map[mergeKey]merged // the latest ones before these
}

// of merges places into an empty merged. With only, the result has the names of the last place and no others.
func (m *merges) of(p *places, only bool, into *merged) {
	switch {
	case p.n == 0:
	case p.n == 1 && p.given == "" && !p.all[0].limits.apart:
		into.limits, into.source = p.all[0].limits, p.all[0].source
	default:
		*into = m.several(p, only)
	}
}

// several is of where the merge is none of the simple ones.
func (m *merges) several(p *places, only bool) merged {
	key := mergeKey{given: p.given, only: only}
	for i := range p.n {
		key.hashes[i], key.sources[i] = p.all[i].limits.Hash(), p.all[i].source
	}
	m.mu.RLock()
	got, known := m.known[key]
	was, knew := m.before[key]
	m.mu.RUnlock()
	switch {
	case known:
		return got
	case knew:
		got = was
	default:
		got = p.merge(only)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil || len(m.known) >= maxMerges {
		m.known, m.before = make(map[mergeKey]merged), m.known
	}
	m.known[key] = got
	return got
}

// merge merges places. Names beyond [MaxLimits] are left out, those of the least specific place first.
func (p *places) merge(only bool) merged {
	inForce, tried := p.mergers(only)
	m := inForce.merged()
	if len(tried.sources) > 0 {
		if m.apart == nil {
			m.apart = &apart{}
		}
		of := tried.merged()
		m.apart.tried = &of
	}
	return m
}

// mergers merges the limits in force, and those that are tried.
func (p *places) mergers(only bool) (inForce, tried merger) {
	last := p.all[p.n-1]
	inForce, tried = merger{sources: make(map[string]Source)}, merger{sources: make(map[string]Source)}
	if i := last.limits.Find(p.given); i >= 0 {
		inForce.add(last.limits.limits[i], SourceRequest)
	}
	for _, at := range p.all[:p.n] {
		for _, l := range at.limits.limits {
			to, named := &inForce, !only || last.limits.Find(l.Name) >= 0
			if of := TriedBeside(l.Name); of != "" {
				to, l.Name, named = &tried, of, named || last.limits.Find(of) >= 0
			}
			if named {
				to.add(l, at.source)
			}
		}
	}
	return inForce, tried
}

// merger collects the limits that decide.
type merger struct {
	limits, quotas []Limit
	zeros          []EffectiveLimit
	sources        map[string]Source // by name
	dropped        []EffectiveLimit  // those without room, each name once
}

// add adds a limit, unless a more specific place has one of its name.
func (m *merger) add(l Limit, source Source) {
	if _, found := m.sources[l.Name]; found {
		return
	}
	if len(m.sources) >= MaxLimits {
		m.drop(l, source)
		return
	}
	m.sources[l.Name] = source
	switch {
	case l.AdmitsNothing():
		m.zeros = append(m.zeros, EffectiveLimit{Limit: l, Source: source})
	case l.Windowed():
		m.quotas = append(m.quotas, l)
	default:
		m.limits = append(m.limits, l)
	}
}

func (m *merger) merged() (out merged) {
	out.limits, out.sources = setOf(m.limits, m.sources)
	if len(m.zeros)+len(m.quotas) > 0 {
		out.apart = &apart{zeros: m.zeros, quotas: quotasOf(m.quotas, m.sources)}
	}
	return out
}

// all returns the limits with their places, those that are tried by their own names.
func (m *merged) all() (out []EffectiveLimit) {
	for i := range m.limits.Len() {
		out = append(out, EffectiveLimit{Limit: m.limits.At(i), Source: m.sourceOf(i)})
	}
	if m.apart == nil {
		return out
	}
	out = append(out, m.apart.zeros...)
	for _, q := range m.apart.quotas {
		out = append(out, q.shown...)
	}
	if m.apart.tried != nil {
		for _, l := range m.apart.tried.all() {
			l.Limit.Name = ShadowName(l.Limit.Name)
			out = append(out, l)
		}
	}
	return out
}

// setOf returns a set of limits that were in others before, with their sources.
func setOf(limits []Limit, sources map[string]Source) (*Limits, []Source) {
	set, err := NewLimits(limits...)
	if err != nil { // impossible: each limit is one of a valid set
		set = nil
	}
	of := make([]Source, set.Len())
	for i := range of {
		of[i] = sources[set.limits[i].Name]
	}
	return set, of
}

// quotasOf returns quotas by their calendars, and each limit in flight.
func quotasOf(all []Limit, sources map[string]Source) []quotas {
	slices.SortFunc(all, func(a, b Limit) int { return strings.Compare(a.Name, b.Name) })
	var out []quotas
	of := make(map[uint64][]Limit)
	for i := range all {
		hash := all[i].windowHash()
		of[hash] = append(of[hash], all[i])
	}
	for i := range all { // in their order
		hash := all[i].windowHash()
		same := of[hash]
		found, err := newWindows(&all[i])
		if len(same) == 0 || err != nil { // of a valid set it has none
			continue
		}
		delete(of, hash)
		q := quotas{windows: found}
		var inWindow []Limit
		parts := make(map[string]Source) // a limit may have the name of a quarter of another one
		for _, l := range same {
			for _, part := range l.inBucket() {
				parts[part.Name] = sources[l.Name]
				inWindow = append(inWindow, part.inWindow())
			}
			q.shown = append(q.shown, EffectiveLimit{Limit: l, Source: sources[l.Name]})
		}
		q.inWindow.limits, q.inWindow.sources = setOf(inWindow, parts)
		out = append(out, q)
	}
	return out
}
