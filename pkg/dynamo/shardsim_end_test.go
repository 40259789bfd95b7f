package dynamo

import "github.com/ratelimit/ratelimit/pkg/limiter"

// settle has everything come to an end, and the bucket be one again.
func (s *shardSim) settle() error {
	for len(s.net) > 0 && s.fault == nil {
		if s.r.IntN(3) == 0 {
			s.timeout(s.net[0])
			s.net = s.net[1:]
		} else {
			s.deliver(0)
		}
	}
	s.lost = false
	for _, r := range s.replicas {
		for _, l := range r.lanes {
			l.load.busy = false
		}
	}
	s.quiesce()
	for _, r := range s.replicas { // so that it knows of the shards
		s.ask(r, limiter.Op{Bucket: s.site.bucket, Limits: s.versions[r.latest], Generation: uint64(r.latest) + 1, Spends: []limiter.Spend{{Limit: s.versions[r.latest].At(0).Name, Look: true}}}, false)
	}
	s.quiesce()
	for round := 0; s.fault == nil && !s.isOne(); round++ {
		if round == 100 {
			s.failf("the shards stay")
		}
		s.now += (simQuiet + 1) * s.unit
		for _, r := range s.replicas {
			r.store.tendTrees(r.store.cfg.Now())
			s.quiesce()
		}
	}
	for _, o := range s.whole {
		s.checkWindows(o.name)
	}
	s.checkAccount()
	s.checkWhole()
	return s.fault
}

// checkAccount requires that what was done is what callers were told.
func (s *shardSim) checkAccount() {
	for _, c := range s.calls {
		decided := c.told && !c.back && c.err == nil
		if !decided || !c.admitted || c.died {
			s.account.untold(c.all(), c.died || s.drop, c.err)
		}
		if !decided {
			continue
		}
		s.expect(c)
	}
	if err := s.account.check(); err != nil {
		s.failf("%v", err)
	}
}

// expect takes down what a caller was told. Where limits go and come, the shards of one
// answer do not all hold the same ones.
func (s *shardSim) expect(c *shardCall) {
	if s.drop {
		for _, r := range c.all() {
			s.account.expectRequest(r, c.admitted && r.admitted)
		}
		return
	}
	for i := range c.ops[0].Spends {
		sp := &c.ops[0].Spends[i]
		if !sp.Held {
			continue
		}
		s.account.expect(sp.Limit, sp.Charge-sp.Refund)
		if c.admitted {
			s.account.expect(sp.Limit, sp.Take)
		}
	}
}

// isOne reports whether the bucket has one shard again.
func (s *shardSim) isOne() bool {
	for i, v := range s.items {
		if v != nil && !v.shard.Retired && (i > 0 || v.shard.Sharded()) {
			return false
		}
	}
	return true
}

// quiesce lets the lanes work until none has anything to do.
func (s *shardSim) quiesce() {
	for range 10_000 {
		if s.fault != nil {
			return
		}
		idle := len(s.net) == 0
		for len(s.net) > 0 {
			s.deliver(0)
		}
		for _, r := range s.replicas {
			if l := s.drawActive(r); l != nil {
				idle = false
				s.work(l)
			}
		}
		if idle {
			for _, c := range s.calls {
				if !c.over {
					s.failf("a call that nobody works on")
				}
			}
			return
		}
	}
	s.failf("the lanes do not come to rest")
}

// checkWhole requires that the one shard fills up, to the capacity and no more.
func (s *shardSim) checkWhole() {
	if s.fault != nil || s.items[0] == nil {
		return
	}
	r := s.replicas[s.r.IntN(len(s.replicas))]
	r.latest = len(s.versions) - 1
	limits := s.versions[r.latest]
	ask := func(n func(whole int64) int64, want bool) {
		op := limiter.Op{Bucket: s.site.bucket, Limits: limits, Generation: uint64(len(s.versions))}
		for i := range limits.Len() {
			op.Spends = append(op.Spends, limiter.Spend{Limit: limits.At(i).Name, Take: n(limits.Params(i).Capacity)})
		}
		denied, failed := s.denied, s.failed
		s.ask(r, op, false)
		if s.quiesce(); s.fault == nil && (s.failed > failed || want != (s.denied == denied)) {
			s.failf("a request of the bucket that is one again: want admitted %t", want)
		}
	}
	ask(func(int64) int64 { return 0 }, true) // under the newest limits
	wait := int64(0)
	for i := range limits.Len() {
		if b := s.items[0].find(limits.At(i).Name); b != nil {
			wait = max(wait, b.state.TimeToFull(b.params, s.late()))
		}
	}
	s.now += wait + 30*s.unit
	ask(func(whole int64) int64 { return whole }, true)
	ask(func(int64) int64 { return 1 }, false)
}
