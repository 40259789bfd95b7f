package limiter

import "sync"

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
const maxPlaces = 8

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

// ordinary adds the places of the entity's ordinary bucket.
func (s *Static) ordinary(p *places, file *StaticEntity, resource string, r []Record) {
	p.addEntityResource(file, resource, r)
	p.addEntity(file, r)
	p.addStored(&r[3], SourceResource)
	if len(s.Resources) > 0 {
		p.add(s.Resources[resource], SourceResourceConfig)
	}
	p.addStored(&r[4], SourceSystem)
	p.add(s.System, SourceSystemConfig)
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
	places [maxPlaces]placeKey
	given  string
}

type placeKey struct {
	hash   uint64
	source Source
}

// maxMerges is how many of the latest merges are remembered, and at most twice as many in all.
const maxMerges = 1 << 13

// merges remembers merges. It is safe for concurrent use. The zero merges has none.
type merges struct {
	mu     sync.RWMutex
	known  map[mergeKey]merged
	before map[mergeKey]merged // the latest ones before these
}

// of merges places. With only, the result has the names of the last place and no others.
func (m *merges) of(p *places, only bool) merged {
	if p.n == 0 {
		return merged{}
	}
	if p.n == 1 && p.given == "" {
		return merged{limits: p.all[0].limits, source: p.all[0].source}
	}
	key := mergeKey{given: p.given}
	for i := range p.n {
		key.places[i] = placeKey{p.all[i].limits.Hash(), p.all[i].source}
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
	last := p.all[p.n-1]
	var limits []Limit
	sources := make(map[string]Source)
	if i := last.limits.Find(p.given); i >= 0 {
		limits, sources[p.given] = append(limits, last.limits.limits[i]), SourceRequest
	}
	for _, at := range p.all[:p.n] {
		for _, l := range at.limits.limits {
			_, found := sources[l.Name]
			if found || only && last.limits.Find(l.Name) < 0 || len(limits) == MaxLimits {
				continue
			}
			limits, sources[l.Name] = append(limits, l), at.source
		}
	}
	set, err := NewLimits(limits...)
	if err != nil { // impossible: each limit is one of a valid set
		return merged{limits: last.limits, source: last.source}
	}
	m := merged{limits: set, sources: make([]Source, set.Len())}
	for i := range m.sources {
		m.sources[i] = sources[set.limits[i].Name]
	}
	return m
}
