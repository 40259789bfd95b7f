package embedded

import "github.com/ratelimit/ratelimit/pkg/limiter"

// flow is flow of a spend of this bucket. An overflow bucket gets no refunds.
func (b *bucket) flow(sp *limiter.Spend, admitted bool) (gives, takes int64) {
	gives, takes = flow(sp, admitted)
	if b.shared {
		gives = 0
	}
	return gives, takes
}

// covers reports whether the block in the file covers the amounts of op, and notes the missing
// amounts as need. The op must be prepared.
func (b *bucket) covers(op *limiter.Op, admitted bool) bool {
	covered := true
	for i := range op.Spends {
		sp := &op.Spends[i]
		if !sp.Held {
			continue
		}
		s := b.block.span(sp.Index)
		if gives, takes := b.flow(sp, admitted); !s.covers(gives, takes) {
			// The sum of the waiting amounts, unless the bucket lacks it or it is a large part.
			sum := min(s.need+takes, b.limits.Params(sp.Index).Capacity/nextShare, sp.Bucket.Tokens)
			s.need = max(s.need, takes, sum)
			covered = false
		}
	}
	return covered
}

// account is finish with a file, of an op that is covered. It counts the tokens that were refunded
// and taken. low reports that a newer state in the file is due. over reports that a crash would now
// lose more than a block, because of a refund: the answer waits for the file.
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
		if takes != gives && !b.uncounted(sp.Limit) {
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

// uncounted reports whether usage leaves a limit of the bucket out. An overflow bucket has no key under which
// its usage could be listed.
func (b *bucket) uncounted(limit string) bool {
	return b.shared || limiter.BucketKey{Variant: b.variant, Window: b.window.value()}.Uncounted(limit)
}

// low reports whether to renew a block: the next one would be larger than the rest of this one, and
// cover a request like the last. If not, low sets the time of the next check.
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

// openBlock takes the state of the bucket that is to be written, with the sizes of the next blocks.
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

// closeBlock takes the state of the bucket that is to be written without a block. The next take
// waits for a new block.
func (b *bucket) closeBlock(now int64) {
	b.forget(now)
	k := b.block
	k.inFlight, k.clean, k.since = true, true, now
	for i := range b.limits.Len() {
		s := k.span(i)
		s.nextSize, s.nextSpent, s.lastNeed = 0, 0, 0
	}
}

// conclude applies the outcome of a commit. It reports whether the file has deleted the record.
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

// endHour ends the hour whose usage is counted, and starts another.
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

// rows appends the usage that moves to rows with the next commit.
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

// consumption calls fn for the usage that no row has. The shard must be locked.
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
