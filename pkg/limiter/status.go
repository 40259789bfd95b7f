package limiter

import (
	"math"
	"time"
)

// reset empties the decision and keeps its memory.
func (d *Decision) reset() {
	clear(d.scratch.ops) // lets go of the last request's limits and strings
	clear(d.scratch.spends)
	*d = Decision{
		Statuses: d.Statuses[:0],
		scratch: scratch{
			levels:  d.scratch.levels[:0],
			refs:    d.scratch.refs[:0],
			records: d.scratch.records[:0],
			ops:     d.scratch.ops[:0],
			spends:  d.scratch.spends[:0],
		},
	}
}

// fill makes the decision of what the store said.
func (d *Decision) fill(now time.Time, req *Request, admitted bool) {
	d.Admitted = admitted
	ms := now.UnixMilli()
	for take := range req.Takes {
		for i := range d.scratch.levels {
			if lv := &d.scratch.levels[i]; lv.take == take && lv.op >= 0 {
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
		d.Statuses = append(d.Statuses, LimitStatus{
			Take: lv.take, Level: lv.depth, Entity: lv.entity, Resource: t.Resource,
			Limit: sp.Limits.At(sp.Index), Source: lv.source,
			Available: sp.Bucket.Tokens, Requested: sp.Take, Exceeded: sp.Exceeded,
		})
		s, p := &d.Statuses[len(d.Statuses)-1], sp.Limits.Params(sp.Index)
		s.Reset = duration(sp.Bucket.TimeToFull(p, now))
		if sp.Exceeded {
			retry, ok := sp.Bucket.RetryAfter(p, sp.need(), now)
			s.RetryAfter, s.Never = duration(retry), !ok
		}
	}
}

// need is the balance that a spend asks for.
func (sp *Spend) need() int64 {
	if sp.Look {
		return max(sp.Take, Milli)
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

// duration converts milliseconds, up to tokenbucket.Forever, to the longest
// duration that there is where they do not fit.
func duration(ms int64) time.Duration {
	if ms > math.MaxInt64/int64(time.Millisecond) {
		return math.MaxInt64
	}
	return time.Duration(ms) * time.Millisecond
}
