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
		if n < 0 {
			lv.complete = false
			continue
		}
		if b.limits.Unlimited(n) {
			continue
		}
		op := sc.opOf(req, lv, b, generation)
		sp := op.spend(c.Limit)
		switch t.Mode {
		case Charge:
			sp.Charge = saturatingAdd(sp.Charge, c.Amount)
		case Refund:
			sp.Refund = saturatingAdd(sp.Refund, c.Amount)
		case Consume:
			sp.Take = saturatingAdd(sp.Take, c.Amount)
			sp.Look = sp.Look || c.Amount == 0
			if t.Lease != (LeasePolicy{}) {
				op.Lease = op.Lease.and(t.Lease)
			}
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
	op.Bucket.Namespace, op.Bucket.Entity, op.Bucket.Resource, op.Bucket.Variant = req.namespace(), lv.entity, t.Resource, t.variant(b == &lv.own)
	for i := range sc.ops[:b.op] {
		if sc.ops[i].Bucket == op.Bucket {
			sc.ops = sc.ops[:b.op]
			b.op = i
			return &sc.ops[i]
		}
	}
	op.Limits, op.Generation, op.Spends, op.Shard, op.KeepTaken, op.Late = b.limits, generation, sc.cut(b.limits.Len()), 0, false, false
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
	if own {
		return VariantOf(t.Limits, t.LimitsOf, t.Label, t.Shadow)
	}
	return VariantOf(nil, "", t.Label, t.Shadow)
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
