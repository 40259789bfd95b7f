package ratemodel

// schedule is drawn from the seed: the limits, the replicas and the faults.
type schedule struct {
	limits, replicas, steps, pace, greedy, stale int
	parts, skew, term, slow                      int64

	lose, crash, sleep, clocks, late bool
	change, charge, refund, shards   bool
	large, fresh, sharedOwn, duel    bool
	parent, latecomer, expire        bool
}
