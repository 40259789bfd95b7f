package ratemodel

import "math/rand/v2"

// Run is one run from a seed with one guard removed, or with none. It returns a
// trace if asked for.
func Run(seed uint64, removed Guard, trace bool) Result {
	rng := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a run is drawn from its seed
	w := &world{dice: dice{rng}, removed: removed, now: start, tracing: trace}
	s := draw(w.dice, seed)
	w.shape = s.schedule
	w.limits = append(w.limits, [maxLimits]limit{}, w.drawLimits())
	m := &model{world: w, book: &ledger{world: w}, weights: s.weights}
	m.begin()
	step := (*model).step
	if s.round != nil {
		step = s.round
	}
	for range w.shape.steps {
		step(m)
		if w.wrong != "" {
			break
		}
	}
	if w.wrong == "" {
		oracle{m}.judge()
		oracle{m}.account()
	}
	return Result{w.wrong, w.trace, w.stats}
}

// begin puts the items into the table, or leaves the first to the first take.
func (m *model) begin() {
	for i := range m.items {
		m.items[i][attrVersion], m.items[i][attrLevel] = 1, 1
		if i > 0 && i < maxShards {
			m.items[i][attrRetired] = 1
		}
	}
	m.parents = m.drawLimits()
	if !m.shape.fresh {
		m.put(0)
	}
	m.put(parentItem)
	for n := range m.shape.replicas {
		r := newReplica(m.world, m.book, n)
		if m.shape.clocks {
			r.offset = m.upTo(2*m.shape.skew) - m.shape.skew
		}
		m.reps = append(m.reps, newActor(r))
		r.read()
	}
}

// put makes an item that is full, or nearly.
func (m *model) put(i int) {
	it := &m.items[i]
	it[attrCreated], it[attrRate], it[attrRoom] = 1, m.shape.parts, m.shape.parts
	it[attrEpoch], it[attrBirth] = 1, 1
	it[attrCount] = perMillisecond
	for l := range m.shape.limits {
		it[deficit(l)] = m.limitOf(it, i, l).refilled(it, m.now) - 5*m.upTo(2)
	}
	m.book.restart(i)
}
