package limiter

// Holding is what an admitted request took of one bucket: enough to book more, or
// give some back, later and in another process.
type Holding struct {
	Bucket     BucketKey
	Limits     *Limits // that the bucket was asked under
	Generation uint64
	Shard      int           // see [Op]
	Level      int           // 0 for the take's entity, 1 for its parent, ...
	Taken      []Consumption // by limit; never of one that is unlimited
}

// Holdings appends what a take of an admitted request took to dst: a holding for
// each bucket of its chain that gave something, in the order of the chain. Names
// are those of the request. There is none of a decision that a policy made.
func (d *Decision) Holdings(dst []Holding, req *Request, take int) []Holding {
	t := &req.Takes[take]
	if !d.Admitted || d.Policy != Unset || t.Mode != Consume || take >= len(d.scratch.bases) {
		return dst
	}
	for i := d.scratch.bases[take]; i >= 0; i = d.scratch.levels[i].above {
		lv := &d.scratch.levels[i]
		if lv.op < 0 {
			continue
		}
		op := &d.scratch.ops[lv.op]
		h := Holding{Bucket: op.Bucket, Limits: op.Limits, Generation: op.Generation, Shard: op.Shard, Level: lv.depth}
		for _, c := range t.Consume {
			if sp := op.find(c.Limit); sp != nil && sp.Held && c.Amount > 0 {
				h.Taken = append(h.Taken, c)
			}
		}
		if len(h.Taken) > 0 {
			dst = append(dst, h)
		}
	}
	return dst
}
