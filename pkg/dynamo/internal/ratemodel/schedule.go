package ratemodel

// draw draws a schedule. Half of the seeds are duels: few kinds of things and much of
// each, where the rare faults are.
func (w *world) draw(seed uint64) schedule {
	s := schedule{
		limits: 1 + w.rng.IntN(2)*int(seed/4%2), replicas: 2 + w.rng.IntN(2),
		steps: 100 + w.rng.IntN(250), pace: 1 + w.rng.IntN(4), greedy: w.rng.IntN(3),
		parts: []int64{6, 6, 6, 1000}[w.rng.IntN(4)], skew: 2 + w.upTo(3), term: 20 + w.upTo(40),
		slow: []int64{1, 1, 10, 40}[w.rng.IntN(4)],
	}
	for _, flag := range []*bool{
		&s.lose, &s.crash, &s.sleep, &s.clocks, &s.change, &s.charge, &s.refund, &s.shards,
		&s.large, &s.late, &s.fresh, &s.sharedOwn, &s.parent, &s.latecomer, &s.expire,
	} {
		*flag = w.chance(2)
	}
	// A refund makes the oracle weaker, and a change of limits has no windows.
	s.refund = s.refund && w.chance(2)
	s.change = s.change && !s.refund
	s.shards = s.shards && !s.change
	s.parent = s.parent && s.refund // what is given back counts in the windows as a refund
	s.latecomer = s.latecomer && s.charge
	switch seed % 8 {
	case 0:
		w.leaseDuel(&s)
	case 1, 2:
		w.leaseDuel(&s)
		s.clocks, s.scripted, s.steps = false, (*world).lateRound, 25
		s.stale = int(seed%8-1) * 2
	case 3:
		w.reapDuel(&s)
		s.scripted, s.steps, s.slow = (*world).reapRound, 25, 1
	case 4:
		w.shardDuel(&s)
	case 6:
		w.reapDuel(&s)
	case 7:
		w.callDuel(&s)
	default:
		s.weights = s.mixed()
	}
	return s
}

func (s *schedule) mixed() []weight {
	flag := func(on bool, n int) int {
		if on {
			return n
		}
		return 0
	}
	return []weight{
		{38, (*replica).burst},
		{14, (*replica).take},
		{18, func(r *replica) { r.lease(false) }},
		{4, func(r *replica) { r.lease(true) }},
		{6, (*replica).reap},
		{flag(s.charge, 2), (*replica).charge},
		{flag(s.refund, 3), (*replica).refund},
		{flag(s.latecomer, 4), (*replica).late},
		{flag(s.parent, 6), (*replica).cascade},
		{flag(s.charge || s.refund, 4), (*replica).pay},
		{2, (*replica).resend},
		{flag(s.change, 2), (*replica).change},
		{flag(s.shards, 6), (*replica).reshape},
		{flag(s.crash, 1), (*replica).mayCrash},
		{flag(s.sleep, 2), (*replica).sleep},
		{flag(s.clocks, 2), (*replica).disturb},
		{12, (*replica).read},
	}
}

// leaseDuel: two replicas, late lease writes, much asked for at once.
func (w *world) leaseDuel(s *schedule) {
	*s = schedule{
		limits: 1, replicas: 2, steps: s.steps, pace: s.pace, greedy: 2,
		parts: 6, skew: s.skew, term: 500, slow: s.slow, late: true, duel: true,
		large: s.large, clocks: s.clocks && w.chance(2),
	}
	s.weights = []weight{
		{30, (*replica).burst},
		{30, (*replica).take},
		{30, func(r *replica) { r.lease(false) }},
		{10, func(r *replica) { r.lease(true) }},
	}
	if s.clocks {
		s.weights = append(s.weights, weight{10, (*replica).disturb})
	}
}

// shardDuel: splits and merges, late and stale.
func (w *world) shardDuel(s *schedule) {
	*s = schedule{
		limits: s.limits, replicas: 2, steps: s.steps, pace: s.pace, greedy: 1,
		parts: 6, skew: s.skew, term: s.term, slow: s.slow, late: true, shards: true,
		clocks: s.clocks, lose: s.lose, charge: s.charge, refund: s.charge && s.refund, expire: s.expire, duel: true,
	}
	s.weights = []weight{
		{10, (*replica).burst},
		{30, (*replica).take},
		{6, func(r *replica) { r.lease(false) }},
		{12, func(r *replica) { r.lease(true) }},
		{50, (*replica).reshape},
	}
	if s.clocks {
		s.weights = append(s.weights, weight{2, (*replica).disturb})
	}
	if s.charge {
		s.weights = append(s.weights, weight{8, (*replica).charge}, weight{20, (*replica).pay}, weight{20, (*replica).resend})
	}
	if s.refund {
		s.weights = append(s.weights, weight{12, (*replica).refund})
	}
}

// callDuel: late decisions, cascades, and what makes up for them; many copies.
func (w *world) callDuel(s *schedule) {
	*s = schedule{
		limits: s.limits, replicas: s.replicas, steps: s.steps, pace: s.pace, greedy: 1,
		parts: 6, skew: s.skew, term: s.term, slow: s.slow, lose: s.lose, late: s.late, sharedOwn: s.sharedOwn,
		charge: true, latecomer: true, refund: s.refund, parent: s.parent, fresh: s.fresh, expire: s.expire, change: s.change,
	}
	s.weights = []weight{
		{20, (*replica).take},
		{20, (*replica).late},
		{20, (*replica).pay},
		{10, (*replica).resend},
		{4, (*replica).charge},
		{4, func(r *replica) { r.lease(false) }},
		{4, func(r *replica) { r.lease(true) }},
		{4, (*replica).burst},
	}
	if s.refund {
		s.weights = append(s.weights, weight{5, (*replica).refund})
	}
	if s.parent {
		s.weights = append(s.weights, weight{20, (*replica).cascade})
	}
	if s.change {
		s.weights = append(s.weights, weight{4, (*replica).change})
	}
}

// reapDuel: short terms, replicas that crash, sleep and come back, and clocks that
// are set.
func (w *world) reapDuel(s *schedule) {
	*s = schedule{
		limits: 1, replicas: 2, steps: s.steps, pace: s.pace, greedy: 2,
		parts: 6, skew: s.skew, term: 8 + w.upTo(20), slow: s.slow, late: s.late,
		crash: true, sleep: true, clocks: s.clocks, charge: s.charge, lose: s.lose, duel: true,
	}
	s.weights = []weight{
		{30, (*replica).burst},
		{15, (*replica).take},
		{20, func(r *replica) { r.lease(false) }},
		{4, func(r *replica) { r.lease(true) }},
		{30, (*replica).reap},
		{4, (*replica).sleep},
		{1, (*replica).mayCrash},
	}
	if s.clocks {
		s.weights = append(s.weights, weight{4, (*replica).disturb})
	}
	if s.charge {
		s.weights = append(s.weights, weight{5, (*replica).charge})
	}
}

// burst asks the own lease for much at once.
func (r *replica) burst() {
	g := r.world.shape.greedy
	for range 1 + 2*g*g {
		r.local()
	}
}

func (r *replica) mayCrash() {
	if r.life+1 < maxLives {
		r.crash()
	}
}
