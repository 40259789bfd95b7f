package limiter

// Holding is the tokens that an admitted request took from one bucket. With it another process can
// charge or refund later.
type Holding struct {
	Bucket     BucketKey
	Limits     *Limits // of the request
	Generation uint64
	Shard      int           // see [Op]
	Level      int           // 0 for the take's entity, 1 for its parent, ...
	Taken      []Consumption // by limit; never of one that is unlimited
}

// Holdings appends to dst the holdings of a take of an admitted request: one for each bucket of its
// chain that gave tokens, in the order of the chain. Names share memory with the request. There is
// none if a policy decided.
func (d *Decision) Holdings(dst []Holding, req *Request, take int) []Holding {
	t := &req.Takes[take]
	if !d.Admitted || d.Policy != Unset || t.Mode != Consume || take >= len(d.scratch.bases) {
		return dst
	}
	for i := d.scratch.bases[take]; i >= 0; i = d.scratch.levels[i].above {
		lv := &d.scratch.levels[i]
		for _, b := range [...]*levelBucket{&lv.own, &lv.ordinary} {
			if h := d.holding(t, lv, b); len(h.Taken) > 0 {
				dst = append(dst, h)
			}
		}
	}
	return dst
}

// holding returns the holding of one bucket of a level.
func (d *Decision) holding(t *Take, lv *level, b *levelBucket) (h Holding) {
	if b.op < 0 {
		return h
	}
	op := &d.scratch.ops[b.op]
	h = Holding{Bucket: op.Bucket, Limits: op.Limits, Generation: op.Generation, Shard: op.Shard, Level: lv.depth}
	for _, c := range t.Consume {
		if sp := op.find(c.Limit); sp != nil && sp.Held && c.Amount > 0 && lv.asks(t, b, c.Limit) {
			h.Taken = append(h.Taken, c)
		}
	}
	return h
}
