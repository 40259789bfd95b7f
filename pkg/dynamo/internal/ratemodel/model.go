package ratemodel

// model is a run: the world, and the replicas in it.
type model struct {
	*world
	book    *ledger
	reps    []actor
	weights []weight
}

// weight is how often a replica does a thing.
type weight struct {
	n  int
	do func(actor)
}

// step delivers messages and has one replica do one thing.
func (m *model) step() {
	m.pass()
	if m.shape.expire && m.chance(8) {
		m.expire()
	}
	for range 4 {
		m.deliver()
	}
	r := m.reps[m.rng.IntN(m.shape.replicas)]
	if r.asleep > m.now {
		return
	}
	if m.chance(4) {
		r.read()
	}
	total := 0
	for _, c := range m.weights {
		total += c.n
	}
	x := m.rng.IntN(total)
	for _, c := range m.weights {
		if x < c.n {
			c.do(r)
			return
		}
		x -= c.n
	}
}

// pass lets time go on.
func (m *model) pass() {
	switch m.rng.IntN(6 * m.shape.pace) {
	case 0, 1:
		m.now += m.upTo(2)
	case 2:
		m.now += m.upTo(11)
	}
	if m.chance(40) {
		m.now += m.upTo(80)
	}
}
