package embedded

import "github.com/ratelimit/ratelimit/pkg/limiter"

// flow is flow of a spend of this bucket: nothing is given to an overflow bucket.
func (b *bucket) flow(sp *limiter.Spend, admitted bool) (gives, takes int64) {
	gives, takes = flow(sp, admitted)
	if b.shared {
		gives = 0
	}
	return gives, takes
}

// covers reports whether the block in the file covers the amounts of op, and notes the missing ones. The
// op must be prepared.
func (b *bucket) covers(op *limiter.Op, admitted bool) bool {
	covered := true
	for i := range op.Spends {
		sp := &op.Spends[i]
		if !sp.Held {
			continue
		}
		s := b.block.span(sp.Index)
		if gives, takes := b.flow(sp, admitted); !s.covers(gives, takes) {
			// The sum of the waiting amounts, as long as it is there and no large part.
			sum := min(s.need+takes, b.limits.Params(sp.Index).Capacity/nextShare, sp.Bucket.Tokens)
			s.need = max(s.need, takes, sum)
			covered = false
		}
	}
	return covered
}

// account is finish with a file, of an op that is covered: it counts what was given and
// taken. It reports whether it is time for a newer state in the file; and whether so
// much was given back that a crash would lose more than a block, until the file has one.
func (b *bucket) account(op *limiter.Op, now int64, admitted bool) (low, over bool) {
	k := b.block
	used := false
	for i := range op.Spends {
		sp := &op.Spends[i]
		if !sp.Held {
			continue
		}
		took := b.spend(sp, admitted)
		gives, takes := b.flow(sp, admitted)
		if gives == 0 && takes == 0 {
			continue
		}
		k.clean = false
		if now >= (k.hour+1)*hourMs {
			b.endHour(hourOf(now))
		}
		s := k.span(sp.Index)
		if takes != gives && !b.uncounted() {
			s.used = limiter.SaturatingSum(s.used, takes-gives)
			used = true
		}
		if gives > 0 {
			over = over || gives > min(s.spent, s.nextSpent) && (k.stored || k.inFlight) || k.unknown
			s.spent, s.nextSpent = max(s.spent-gives, 0), max(s.nextSpent-gives, 0)
		}
		if took > 0 {
			s.spent += took
			s.nextSpent += took
			s.last = takes
			if takes >= s.lastNeed {
				s.lastNeed = 0
			}
			low = low || s.spent > s.renewAt && !k.queued && !k.inFlight && b.low(sp.Index, now)
		}
	}
	if used {
		k.events++
	}
	return low, over
}

// uncounted reports whether usage leaves the bucket out: a shadow is none, and an overflow bucket has no key
// that usage could be asked for by.
func (b *bucket) uncounted() bool {
	return b.shared || limiter.BucketKey{Variant: b.variant}.Shadow()
}

// low reports whether a block is so far used up that the next one would be larger than
// the rest of it, and cover a request like the last; if not, it says when to ask again.
func (b *bucket) low(i int, now int64) bool {
	s := b.block.span(i)
	left := s.size - s.spent
	if b.nextSize(i, now) > max(left, s.last-1) {
		return true
	}
	s.renewAt = s.spent + left/2
	return false
}

// nextSize is span.next of the i-th limit.
func (b *bucket) nextSize(i int, now int64) int64 {
	p := b.limits.Params(i)
	return b.block.span(i).next(p.Capacity, b.balance(i).Available(p, now+2*blockLasts), now-b.block.since)
}

// launch takes the state of the bucket that is to be written, with the next sizes.
func (b *bucket) openBlock(now int64) {
	b.forget(now)
	k := b.block
	k.inFlight, k.clean = true, false
	for i := range b.limits.Len() {
		if b.limits.Unlimited(i) {
			continue
		}
		s := k.span(i)
		s.nextSize, s.nextSpent = max(b.nextSize(i, now), s.lastNeed), 0
		s.need, s.lastNeed = 0, s.need
	}
	k.since = now
}

// closeBlock covers nothing: the file is to have the exact state. A take waits then for the next one.
func (b *bucket) closeBlock(now int64) {
	b.forget(now)
	k := b.block
	k.inFlight, k.clean, k.since = true, true, now
	for i := range b.limits.Len() {
		s := k.span(i)
		s.nextSize, s.nextSpent, s.lastNeed = 0, 0, 0
	}
}

// vacate covers nothing: the file is to forget the bucket.
func (b *bucket) deleteRecord(how commitKind) {
	k := b.block
	k.inFlight, k.deleting, k.clean = true, how, false
	for i := range b.limits.Len() {
		s := k.span(i)
		*s = span{used: s.used, last: s.last}
	}
}

// land puts the state that was written in force. It reports whether the file has
// forgotten the bucket.
func (b *bucket) conclude(how outcome) (left bool) {
	k := b.block
	left = k.deleting != commitOpen && how == committed
	k.inFlight, k.deleting, k.unknown = false, commitOpen, k.unknown || how == unknown
	k.clean = k.clean && how == committed
	for i := range b.limits.Len() {
		k.span(i).conclude(how)
	}
	if k.rest != nil {
		if how == committed {
			k.rest.past = k.rest.past[k.rest.inFlight:]
			k.rest.marks = k.rest.marks[k.rest.marksInFlight:]
		}
		k.rest.inFlight, k.rest.marksInFlight = 0, 0
	}
	if how == committed {
		k.stored = !left
	}
	return left
}

// turn ends the hour that is counted, and counts another.
func (b *bucket) endHour(hour int64) {
	k := b.block
	for i := range b.limits.Len() {
		s := k.span(i)
		k.put(b.limits.At(i).Name, s.used)
		s.used = 0
	}
	k.put(eventsLimit, k.events)
	k.hour, k.events = hour, 0
}

// rows appends what is to be in rows from the next commit on.
func (b *bucket) rows(rows []usageRow) []usageRow {
	past := b.block.rest
	if past == nil {
		return rows
	}
	past.inFlight = len(past.past)
	for _, c := range past.past {
		rows = append(rows, usageRow{consumed: c, namespace: b.namespace.Value(), entity: b.entity, resource: b.resource.Value()})
	}
	return rows
}

// marks appends the marks that are to be in the file from the next commit on.
func (b *bucket) marks(changes []change) []change {
	pending := b.block.rest
	if pending == nil {
		return changes
	}
	pending.marksInFlight = len(pending.marks)
	return append(changes, pending.marks...)
}

// consumption calls fn for what rows do not have. The shard must be locked.
func (b *bucket) consumption(fn func(consumed)) {
	k := b.block
	if k == nil {
		return
	}
	for i := range b.limits.Len() {
		fn(consumed{k.hour, b.limits.At(i).Name, k.span(i).used})
	}
	fn(consumed{k.hour, eventsLimit, k.events})
	if k.rest != nil {
		for _, c := range k.rest.past {
			fn(c)
		}
	}
}
