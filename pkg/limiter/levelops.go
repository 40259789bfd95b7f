package limiter

// addOps adds the spends of a level's buckets to the ops. They are merged with those of an earlier
// take of the same bucket.
func (sc *scratch) addOps(req *Request, i int, generation uint64) {
	lv := &sc.levels[i]
	t := &req.Takes[lv.take]
	lv.complete = true
	for j := range t.Consume {
		c := &t.Consume[j]
		b, n := lv.bucketOf(c.Limit)
		elsewhere := lv.elsewhere(t, b, c.Limit)
		switch {
		case elsewhere:
		case n < 0:
			lv.complete = lv.complete && b.zero(c.Limit) != nil
		case !b.limits.Unlimited(n):
			sc.opOf(req, lv, b, generation).add(t, b.limits.limits[n].Name, c.Amount)
			if b.window.InFlight() { // rule: a request in flight is in the next quarter too
				of, next := lv.following(b)
				sc.opOf(req, lv, of, generation).add(t, of.limits.limits[next].Name, c.Amount)
			}
		}
		for k := range lv.windows {
			of := &lv.windows[k]
			if quota := lv.budgetIn(t, of, c.Limit); quota != "" {
				sc.opOf(req, lv, of, generation).add(t, quota, c.Amount)
			}
		}
	}
}

// elsewhere reports whether a limit of a bucket is not to be tried, as the one in force is in another bucket.
func (lv *level) elsewhere(t *Take, b *levelBucket, limit string) bool {
	return t.Tried && lv.hidden(t, b, limit)
}

// hidden reports whether the take's own limits have the name of a limit of the ordinary bucket.
func (lv *level) hidden(t *Take, b *levelBucket, limit string) bool {
	return !b.own && lv.depth == 0 && t.Limits.Find(limit) >= 0
}

// budgetIn returns the name of the quota in a window's bucket that is a budget of a limit; "" for none. It is
// none where the take names the quota itself, and where another bucket decides about the name.
func (lv *level) budgetIn(t *Take, b *levelBucket, limit string) string {
	for i := range b.limits.limits {
		name := b.limits.limits[i].Name
		if b.quotas.windows.BudgetOf(name) != limit || t.consumes(name) || lv.elsewhere(t, b, name) {
			continue
		}
		if at, _ := lv.bucketOf(name); at == b {
			return name
		}
	}
	return ""
}

// add adds an amount of a take to the spend of a limit.
func (op *Op) add(t *Take, limit string, amount int64) {
	sp := op.spend(limit)
	switch t.Mode {
	case Charge:
		sp.Charge = saturatingAdd(sp.Charge, amount)
	case Refund:
		sp.Refund = saturatingAdd(sp.Refund, amount)
	case Consume:
		sp.Take = saturatingAdd(sp.Take, amount)
		sp.Look = sp.Look || amount == 0
		if t.Lease != (LeasePolicy{}) {
			op.Lease = op.Lease.and(t.Lease)
		}
	}
}

// opOf returns the op of a bucket of a level, a new one unless it is there.
func (sc *scratch) opOf(req *Request, lv *level, b *levelBucket, generation uint64) *Op {
	if b.op >= 0 {
		return &sc.ops[b.op]
	}
	t := &req.Takes[lv.take]
	b.op = len(sc.ops)
	op := grow(&sc.ops)
	op.Bucket.Namespace, op.Bucket.Entity, op.Bucket.Resource, op.Bucket.Variant, op.Bucket.Window = req.namespace(), lv.entity, t.Resource, t.variant(b.own), b.window
	for i := range sc.ops[:b.op] {
		if sc.ops[i].Bucket == op.Bucket {
			sc.ops = sc.ops[:b.op]
			b.op = i
			return &sc.ops[i]
		}
	}
	op.Limits, op.Generation, op.Spends, op.Shard, op.KeepTaken, op.Late, op.ByShare = b.limits, generation, sc.cut(b.limits.Len()), 0, false, false, false
	op.Lease.None, op.Lease.Max, op.Lease.For = false, 0, 0
	return op
}

// cut returns an empty slice with room for n spends.
func (sc *scratch) cut(n int) []Spend {
	if cap(sc.spends)-len(sc.spends) < n {
		sc.spends = make([]Spend, 0, max(2*cap(sc.spends), n, 4)) // ops still use the old one
	}
	end := len(sc.spends) + n
	cut := sc.spends[len(sc.spends):len(sc.spends):end]
	sc.spends = sc.spends[:end]
	return cut
}

// variant distinguishes buckets of a take's own limits, of labels, and of shadows from ordinary ones.
func (t *Take) variant(own bool) uint64 {
	label := t.Label
	if t.Tried { // others than those of rules in shadow mode
		label += shadowSuffix
	}
	if own {
		return VariantOf(t.Limits, t.LimitsOf, label, t.Shadow || t.Tried)
	}
	return VariantOf(nil, "", label, t.Shadow || t.Tried)
}

// VariantOf returns the variant of the buckets of a [Take] with these limits of its own, which
// belong to of, and with this label. It is 0 without any of them. Variants of shadows, and no
// others, are at or above [ShadowVariants].
func VariantOf(limits *Limits, of, label string, shadow bool) uint64 {
	var v uint64
	switch {
	case limits == nil:
	case of != "":
		v = fnv1a(of)
	default:
		v = limits.Hash()
	}
	if label != "" {
		v = v*31 + fnv1a(label)
	}
	switch {
	case shadow:
		v |= ShadowVariants
	case v >= ShadowVariants:
		v ^= 1 << 63
	}
	return v
}
