package limiter

import "time"

// reset empties the decision and keeps its memory. It sets field by field: this
// is on the hot path, and copying the whole would cost more than deciding.
func (d *Decision) reset() {
	d.Admitted, d.Reason, d.RetryAfter = false, ReasonNone, 0
	d.MissingTake, d.MissingLimit = 0, ""
	d.Late, d.Policy, d.Unavailable, d.Kept = false, Unset, nil, false
	d.Statuses = d.Statuses[:0]
	sc := &d.scratch
	sc.offline, sc.late, sc.unread, sc.policy, sc.decides = false, false, false, Unset, Unset
	sc.levels, sc.bases = sc.levels[:0], sc.bases[:0]
	sc.refs, sc.records = sc.refs[:0], sc.records[:0]
	sc.ops, sc.spends = sc.ops[:0], sc.spends[:0]
}

// fill makes the decision of what the store said.
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

// isLate reports whether any part of the decision was made without the store's answer.
func (sc *scratch) isLate() bool {
	late := sc.late
	for i := range sc.ops {
		late = late || sc.ops[i].Late
	}
	return late
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

// grow makes a slice one longer and returns the new element, which holds what
// was there before: reusing an element in place spares writing it twice.
func grow[T any](s *[]T) *T {
	if n := len(*s); n < cap(*s) {
		*s = (*s)[:n+1]
	} else {
		var zero T
		*s = append(*s, zero)
	}
	return &(*s)[len(*s)-1]
}

// need is the balance that a spend asks for.
func (sp *Spend) need() int64 {
	if sp.Look {
		return max(sp.Take, Milli)
	}
	return sp.Take
}

// requested is what a status says was asked for: 0, for a look, also where less
// than the whole token of a look was to be taken.
func (sp *Spend) requested() int64 {
	if sp.Look && sp.Take < Milli {
		return 0
	}
	return sp.Take
}

func (t *Take) consumes(limit string) bool {
	for i := range t.Consume {
		if t.Consume[i].Limit == limit {
			return true
		}
	}
	return false
}

// milliseconds converts a wait, at most tokenbucket.Forever, which fits.
func milliseconds(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }
