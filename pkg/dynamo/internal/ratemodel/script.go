package ratemodel

// script is drawn from the seed: the schedule, and the actions of each step.
type script struct {
	schedule
	weights []weight
	round   func(*model) // instead of the weights; nil = none
}

// draw draws a script. Half of the seeds are duels: few kinds of things and much of
// each, where the rare faults are.
func draw(d dice, seed uint64) script {
	s := script{schedule: schedule{
		limits: 1 + d.rng.IntN(2)*int(seed/4%2), replicas: 2 + d.rng.IntN(2),
		steps: 100 + d.rng.IntN(250), pace: 1 + d.rng.IntN(4), greedy: d.rng.IntN(3),
		parts: []int64{6, 6, 6, 1000}[d.rng.IntN(4)], skew: 2 + d.upTo(3), term: 20 + d.upTo(40),
		slow: []int64{1, 1, 10, 40}[d.rng.IntN(4)],
	}}
	for _, flag := range []*bool{
		&s.lose, &s.crash, &s.sleep, &s.clocks, &s.change, &s.charge, &s.refund, &s.shards,
		&s.large, &s.late, &s.fresh, &s.sharedOwn, &s.parent, &s.latecomer, &s.expire,
	} {
		*flag = d.chance(2)
	}
	// A refund makes the oracle weaker, and a change of limits has no windows.
	s.refund = s.refund && d.chance(2)
	s.change = s.change && !s.refund
	s.shards = s.shards && !s.change
	s.parent = s.parent && s.refund // tokens given back count in the windows as a refund
	s.latecomer = s.latecomer && s.charge
	switch seed % 8 {
	case 0:
		s.leaseDuel(d)
	case 1, 2:
		s.leaseDuel(d)
		s.clocks, s.round, s.steps = false, (*model).lateRound, 25
		s.stale = int(seed%8-1) * 2
	case 3:
		s.reapDuel(d)
		s.round, s.steps, s.slow = (*model).reapRound, 25, 1
	case 4:
		s.shardDuel()
	case 6:
		s.reapDuel(d)
	case 7:
		s.callDuel()
	default:
		s.weights = s.mixed()
	}
	return s
}

func (s *script) mixed() []weight {
	flag := func(on bool, n int) int {
		if on {
			return n
		}
		return 0
	}
	return []weight{
		{38, actor.burst},
		{14, actor.take},
		{18, func(r actor) { r.lease(false) }},
		{4, func(r actor) { r.lease(true) }},
		{6, actor.reap},
		{flag(s.charge, 2), actor.charge},
		{flag(s.refund, 3), actor.refund},
		{flag(s.latecomer, 4), actor.late},
		{flag(s.parent, 6), actor.cascade},
		{flag(s.charge || s.refund, 4), actor.pay},
		{2, actor.resend},
		{flag(s.change, 2), actor.change},
		{flag(s.shards, 6), actor.reshape},
		{flag(s.crash, 1), actor.mayCrash},
		{flag(s.sleep, 2), actor.sleep},
		{flag(s.clocks, 2), actor.disturb},
		{12, actor.read},
	}
}

// leaseDuel: two replicas, late lease writes, much asked for at once.
func (s *script) leaseDuel(d dice) {
	*s = script{schedule: schedule{
		limits: 1, replicas: 2, steps: s.steps, pace: s.pace, greedy: 2,
		parts: 6, skew: s.skew, term: 500, slow: s.slow, late: true, duel: true,
		large: s.large, clocks: s.clocks && d.chance(2),
	}}
	s.weights = []weight{
		{30, actor.burst},
		{30, actor.take},
		{30, func(r actor) { r.lease(false) }},
		{10, func(r actor) { r.lease(true) }},
	}
	if s.clocks {
		s.weights = append(s.weights, weight{10, actor.disturb})
	}
}

// shardDuel: splits and merges, late and stale.
func (s *script) shardDuel() {
	*s = script{schedule: schedule{
		limits: s.limits, replicas: 2, steps: s.steps, pace: s.pace, greedy: 1,
		parts: 6, skew: s.skew, term: s.term, slow: s.slow, late: true, shards: true,
		clocks: s.clocks, lose: s.lose, charge: s.charge, refund: s.charge && s.refund, expire: s.expire, duel: true,
	}}
	s.weights = []weight{
		{10, actor.burst},
		{30, actor.take},
		{6, func(r actor) { r.lease(false) }},
		{12, func(r actor) { r.lease(true) }},
		{50, actor.reshape},
	}
	if s.clocks {
		s.weights = append(s.weights, weight{2, actor.disturb})
	}
	if s.charge {
		s.weights = append(s.weights, weight{8, actor.charge}, weight{20, actor.pay}, weight{20, actor.resend})
	}
	if s.refund {
		s.weights = append(s.weights, weight{12, actor.refund})
	}
}

// callDuel: late decisions, cascades, and their remedies; many copies.
func (s *script) callDuel() {
	*s = script{schedule: schedule{
		limits: s.limits, replicas: s.replicas, steps: s.steps, pace: s.pace, greedy: 1,
		parts: 6, skew: s.skew, term: s.term, slow: s.slow, lose: s.lose, late: s.late, sharedOwn: s.sharedOwn,
		charge: true, latecomer: true, refund: s.refund, parent: s.parent, fresh: s.fresh, expire: s.expire, change: s.change,
	}}
	s.weights = []weight{
		{20, actor.take},
		{20, actor.late},
		{20, actor.pay},
		{10, actor.resend},
		{4, actor.charge},
		{4, func(r actor) { r.lease(false) }},
		{4, func(r actor) { r.lease(true) }},
		{4, actor.burst},
	}
	if s.refund {
		s.weights = append(s.weights, weight{5, actor.refund})
	}
	if s.parent {
		s.weights = append(s.weights, weight{20, actor.cascade})
	}
	if s.change {
		s.weights = append(s.weights, weight{4, actor.change})
	}
}

// reapDuel: short terms, replicas that crash, sleep and come back, and clocks that
// are set.
func (s *script) reapDuel(d dice) {
	*s = script{schedule: schedule{
		limits: 1, replicas: 2, steps: s.steps, pace: s.pace, greedy: 2,
		parts: 6, skew: s.skew, term: 8 + d.upTo(20), slow: s.slow, late: s.late,
		crash: true, sleep: true, clocks: s.clocks, charge: s.charge, lose: s.lose, duel: true,
	}}
	s.weights = []weight{
		{30, actor.burst},
		{15, actor.take},
		{20, func(r actor) { r.lease(false) }},
		{4, func(r actor) { r.lease(true) }},
		{30, actor.reap},
		{4, actor.sleep},
		{1, actor.mayCrash},
	}
	if s.clocks {
		s.weights = append(s.weights, weight{4, actor.disturb})
	}
	if s.charge {
		s.weights = append(s.weights, weight{5, actor.charge})
	}
}
