package limiter

import (
	"slices"
	"time"
)

// fill fills in the decision from the store's answer.
func (d *Decision) fill(now time.Time, req *Request, admitted bool) {
	d.Admitted, d.Late = admitted, d.scratch.isLate()
	ms := now.UnixMilli()
	for take := range req.Takes {
		for i := d.scratch.bases[take]; i >= 0; i = d.scratch.levels[i].above {
			lv := &d.scratch.levels[i]
			for k := range lv.buckets() {
				d.fillBucket(ms, &req.Takes[take], lv, lv.bucket(k))
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

// fillBucket adds a status for each limit that a take asks of a bucket of a level.
func (d *Decision) fillBucket(now int64, t *Take, lv *level, b *levelBucket) {
	if b.op < 0 {
		return
	}
	op := &d.scratch.ops[b.op]
	for i := range op.Spends {
		sp := &op.Spends[i]
		if !sp.Held || !lv.asks(t, b, sp.Limit) || d.shown(lv, b, sp) {
			continue
		}
		s := grow(&d.Statuses)
		s.Take, s.Level, s.Entity, s.Resource = lv.take, lv.depth, lv.entity, t.Resource
		s.Limit, s.Source = &sp.Limits.limits[sp.Index], b.sourceOf(b.find(sp))
		s.Plan = lv.planAt(b, s.Source)
		s.Available, s.Requested, s.Exceeded = sp.Bucket.Tokens, sp.requested(), sp.Exceeded
		s.RetryAfter, s.Never = 0, false
		p := sp.Limits.Params(sp.Index)
		s.Reset = milliseconds(sp.Bucket.TimeToFull(p, now))
		if sp.Exceeded {
			retry, ok := sp.Bucket.RetryAfter(p, sp.need(), now)
			s.RetryAfter, s.Never = milliseconds(retry), !ok
		}
		b.fillWindow(s, now)
	}
}

// shown reports whether the status of the present quarter stands for a spend of the next one: unless the next
// quarter denied alone. Then the clock of another process is ahead.
func (d *Decision) shown(lv *level, b *levelBucket, sp *Spend) bool {
	if !b.window.InFlight() {
		return false
	}
	at, n := lv.bucketOf(b.named(sp.Limit))
	present := at.limits.limits[n].Name
	i := slices.IndexFunc(d.scratch.ops[at.op].Spends, func(other Spend) bool { return other.Limit == present })
	return (at != b || sp.Limit != present) && (!sp.Exceeded || i >= 0 && d.scratch.ops[at.op].Spends[i].Exceeded)
}

// retryInFlight is the time after which a request that finds too many in flight is repeated: one of them may
// end at any time.
const retryInFlight = time.Second

// fillWindow has the status of a quota show the quota, and wait for the end of its window.
func (b *levelBucket) fillWindow(s *LimitStatus, now int64) {
	if b.quotas == nil {
		return
	}
	rest := milliseconds(max(b.window.End*1000-now, 1))
	if b.window.InFlight() {
		rest = retryInFlight
	}
	if s.RetryAfter > 0 {
		s.RetryAfter = rest
	}
	if s.Reset > 0 {
		s.Reset = rest
	}
	shown := &b.quotas.shown[b.quotas.find(b.named(s.Limit.Name))].Limit
	if shown.Capacity != s.Limit.Capacity { // the store has another quota in force
		other := *shown
		other.Capacity = s.Limit.Capacity
		shown = &other
	}
	s.Limit = shown
}

// milliseconds converts a wait, at most tokenbucket.Forever, which fits.
func milliseconds(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }
