package limiter

import "time"

// fill fills in the decision from the store's answer.
func (d *Decision) fill(now time.Time, req *Request, admitted bool) {
	d.Admitted, d.Late = admitted, d.scratch.isLate()
	ms := now.UnixMilli()
	for take := range req.Takes {
		for i := d.scratch.bases[take]; i >= 0; i = d.scratch.levels[i].above {
			if lv := &d.scratch.levels[i]; lv.op >= 0 {
				d.fillLevel(ms, &req.Takes[take], lv)
			}
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

// fillLevel adds a status for each limit that a take asks of a level's bucket.
func (d *Decision) fillLevel(now int64, t *Take, lv *level) {
	op := &d.scratch.ops[lv.op]
	for i := range op.Spends {
		sp := &op.Spends[i]
		if !sp.Held || !t.consumes(sp.Limit) {
			continue
		}
		s := grow(&d.Statuses)
		s.Take, s.Level, s.Entity, s.Resource = lv.take, lv.depth, lv.entity, t.Resource
		s.Limit, s.Source = &sp.Limits.limits[sp.Index], lv.source
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
