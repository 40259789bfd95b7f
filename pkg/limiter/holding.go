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
// none if a policy decided, and none in flight: see [Decision.InFlight].
func (d *Decision) Holdings(dst []Holding, req *Request, take int) []Holding {
	return d.holdings(dst, req, take, false)
}

// InFlight appends to dst the holdings of requests in flight, of all takes of an admitted request. There is
// none if a policy decided.
func (d *Decision) InFlight(dst []Holding, req *Request) []Holding {
	if !d.scratch.inFlight {
		return dst
	}
	for take := range req.Takes {
		dst = d.holdings(dst, req, take, true)
	}
	return dst
}

// holdings appends the holdings of a take, of limits in flight or of others.
func (d *Decision) holdings(dst []Holding, req *Request, take int, inFlight bool) []Holding {
	t := &req.Takes[take]
	if !d.Admitted || d.Policy != Unset || t.Mode != Consume || take >= len(d.scratch.bases) {
		return dst
	}
	for i := d.scratch.bases[take]; i >= 0; i = d.scratch.levels[i].above {
		lv := &d.scratch.levels[i]
		for k := range lv.buckets() {
			b := lv.bucket(k)
			if inFlight != b.window.InFlight() { // rule: what is in flight is held once
				continue
			}
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
	for i := range op.Spends {
		sp := &op.Spends[i]
		if !sp.Held || !lv.asks(t, b, sp.Limit) {
			continue
		}
		name := b.named(sp.Limit)
		amount := t.amount(name)
		if !t.consumes(name) {
			amount = t.amount(b.quotas.windows.BudgetOf(sp.Limit))
		}
		if amount > 0 {
			h.Taken = append(h.Taken, Consumption{Limit: sp.Limit, Amount: amount})
		}
	}
	return h
}
