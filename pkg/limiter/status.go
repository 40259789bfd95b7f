package limiter

import "time"

// fill fills in the decision from the store's answer.
func (d *Decision) fill(now time.Time, req *Request, admitted bool) {
	d.Admitted, d.Late = admitted, d.scratch.isLate()
	ms := now.UnixMilli()
	for take := range req.Takes {
		for i := d.scratch.bases[take]; i >= 0; i = d.scratch.levels[i].above {
			lv := &d.scratch.levels[i]
			d.fillBucket(ms, &req.Takes[take], lv, &lv.own)
			d.fillBucket(ms, &req.Takes[take], lv, &lv.ordinary)
		}
	}
	if admitted {
		return
	}
	d.Reason = ReasonExhausted
	for i := range d.Statuses {
		s := &d.Statuses[i]
		if s.Never {
			d.Reason, d.RetryAfter = ReasonExceedsCapacity, 0
			return
		}
		d.RetryAfter = max(d.RetryAfter, s.RetryAfter)
	}
}

// fillBucket adds a status for each limit that a take asks of a bucket of a level.
func (d *Decision) fillBucket(now int64, t *Take, lv *level, b *levelBucket) {
	if b.op < 0 {
		return
	}
	op := &d.scratch.ops[b.op]
	for i := range op.Spends {
		sp := &op.Spends[i]
		if !sp.Held || !lv.asks(t, b, sp.Limit) {
			continue
		}
		s := grow(&d.Statuses)
		s.Take, s.Level, s.Entity, s.Resource = lv.take, lv.depth, lv.entity, t.Resource
		s.Limit, s.Source = &sp.Limits.limits[sp.Index], b.sourceOf(b.find(sp))
		s.Available, s.Requested, s.Exceeded = sp.Bucket.Tokens, sp.requested(), sp.Exceeded
		s.RetryAfter, s.Never = 0, false
		p := sp.Limits.Params(sp.Index)
		s.Reset = milliseconds(sp.Bucket.TimeToFull(p, now))
		if sp.Exceeded {
			retry, ok := sp.Bucket.RetryAfter(p, sp.need(), now)
			s.RetryAfter, s.Never = milliseconds(retry), !ok
		}
	}
}

// milliseconds converts a wait, at most tokenbucket.Forever, which fits.
func milliseconds(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }
