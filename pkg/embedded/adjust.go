package embedded

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// AdjustBucket implements limiter.Buckets. With a file it returns when the file has the new
// balance. The event is written before the balance, so a crash can leave an event without a change.
// The mark of a Once is written with the balance.
func (b *balances) AdjustBucket(ctx context.Context, now time.Time, a limiter.Adjustment) (limiter.Adjusted, error) {
	if err := a.Check(); err != nil {
		return limiter.Adjusted{}, err
	}
	if err := b.catalog.usable(ctx); err != nil {
		return limiter.Adjusted{}, err
	}
	t := adjustment{Adjustment: a, balances: b, hash: b.table.hash(&a.Bucket)}
	if a.Once != "" {
		select {
		case b.once <- struct{}{}: // a repetition waits for the outcome of the first call
			defer func() { <-b.once }()
		case <-ctx.Done():
			return limiter.Adjusted{}, contextErr(ctx)
		}
	}
	out, err := t.read(now.UnixMilli())
	if err != nil {
		return out, err
	}
	if first, made, err := t.first(now); err != nil || made {
		if err == nil {
			err = t.await(ctx)
		}
		return t.repeated(&out, first), err
	}
	if !out.Found || t.DryRun || t.Unfit(out.Booked) {
		return out, nil
	}
	if won, err := t.claim(now, out.Booked); err != nil || !won {
		return t.repeated(&out, nil), err
	}
	done, err := t.make(ctx, now.UnixMilli(), &out)
	switch {
	case err != nil && done: // made in memory
		return limiter.Adjusted{}, fmt.Errorf("%w: %w", limiter.ErrUncertain, err)
	case err != nil, t.Unfit(out.Booked): // the room went after it was read
		t.unclaim()
	}
	if err != nil {
		return limiter.Adjusted{}, err
	}
	return out, nil
}

// make makes the adjustment, and waits until the file has it. done reports that it was made in
// memory.
func (t *adjustment) make(ctx context.Context, now int64, out *limiter.Adjusted) (done bool, err error) {
	if err := t.writeEvent(ctx); err != nil {
		return false, err
	}
	for {
		done, wait, err := t.try(now, out)
		if err == nil && wait != nil {
			err = wait.wait(ctx)
		}
		if err != nil || done {
			return done, err
		}
	}
}

// claim makes the mark of a Once in memory, with the bookings that are expected. It reports whether
// this adjustment is the first of its Once. With a file the mark is written with the balance, in
// one transaction.
func (t *adjustment) claim(now time.Time, booked []limiter.Booking) (won bool, err error) {
	if t.Once == "" {
		return true, nil
	}
	t.once = t.mark(now, booked)
	t.balances.settlements.marks.noteTime(now.UnixMilli())
	return t.balances.settlements.claim(&t.once)
}

// unclaim deletes the mark of an adjustment that was not made.
func (t *adjustment) unclaim() {
	if t.Once != "" {
		t.balances.settlements.unclaim(&t.once)
	}
}

// await waits until the file has the marks of the bucket.
func (t *adjustment) await(ctx context.Context) error {
	if wait := t.pending(); wait != nil {
		return wait.wait(ctx)
	}
	return nil
}

// pending returns the commit that has the marks of the bucket, nil where the file has them.
func (t *adjustment) pending() *batch {
	sh := t.shard()
	sh.mu.Lock()
	defer sh.mu.Unlock()
	b, err := t.bucket(sh)
	if err != nil || b == nil || b.block == nil || b.block.rest == nil || len(b.block.rest.marks) == 0 {
		return nil
	}
	return t.balances.disk.want(sh, t.hash, b)
}

// adjustment is an adjustment under way.
type adjustment struct {
	limiter.Adjustment

	balances *balances
	hash     uint64

	limits     *limiter.Limits // of the bucket that read found
	generation uint64

	once limiter.Mark // of a Once
}

// mark returns the mark of a Once. Its owner identifies this call, and records the bookings of the
// call.
func (t *adjustment) mark(now time.Time, booked []limiter.Booking) limiter.Mark {
	return limiter.Mark{
		Namespace: t.Bucket.Namespace, ID: t.markID(),
		Owner: rand.Text() + t.OnceRecord(booked), Expires: now.Add(limiter.OnceAge),
	}
}

func (t *adjustment) markID() string {
	sum := sha256.Sum256([]byte(t.Once))
	return "adjust/" + base64.RawURLEncoding.EncodeToString(sum[:])
}

// first returns the adjustment that this one repeats, and whether there is one.
func (t *adjustment) first(now time.Time) (*limiter.FirstAdjustment, bool, error) {
	if t.Once == "" {
		return nil, false, nil
	}
	owner, found, err := t.balances.settlements.owner(&limiter.Mark{Namespace: t.Bucket.Namespace, ID: t.markID()}, now.UnixMilli())
	if !found || len(owner) < len(rand.Text()) {
		return nil, found, err
	}
	return t.FirstOf(owner[len(rand.Text()):]), true, nil
}

// repeated returns the outcome of an adjustment that repeats an earlier one.
func (t *adjustment) repeated(out *limiter.Adjusted, first *limiter.FirstAdjustment) limiter.Adjusted {
	return limiter.Adjusted{Found: out.Found, Repeated: true, Before: out.Before, After: out.Before, First: first}
}

// settle records the bookings in the mark of a Once, and has it written with the balance. A booking
// differs from the expected one where a request used the bucket in between. The shard must be locked.
func (t *adjustment) settle(b *bucket, booked []limiter.Booking) {
	if t.Once == "" {
		return
	}
	t.balances.settlements.rewrite(&t.once, t.once.Owner[:len(rand.Text())]+t.OnceRecord(booked))
	if t.balances.disk == nil {
		return
	}
	kept := mark{owner: t.once.Owner, expires: t.once.Expires.UnixMilli()}
	k := b.block
	k.clean, k.backlog().marks = false, append(k.backlog().marks, kept.put(markName(&t.once)))
}

// writeEvent writes the audit event. A store without a file stores none.
func (t *adjustment) writeEvent(ctx context.Context) error {
	if t.balances.disk == nil || t.Follows {
		return nil
	}
	return t.balances.catalog.change(ctx, t.Bucket.Namespace, func(c *edit) error {
		c.audit(t.Kind.Action(), limiter.EntityLimitsRef(t.Bucket.Entity, t.Bucket.Resource), t.Detail(&limiter.Adjusted{}))
		return nil
	})
}

// bucket returns the bucket, nil for none. The shard must be locked.
func (t *adjustment) bucket(sh *shard) (*bucket, error) {
	if sh.buckets == nil {
		return nil, limiter.ErrClosed
	}
	for b := sh.buckets[t.hash]; b != nil; b = b.next {
		if b.is(&t.Bucket) {
			return b, nil
		}
	}
	return nil, nil
}

func (t *adjustment) shard() *shard { return &t.balances.table.shards[t.hash%shardCount] }

// read returns the state of the bucket, and refuses an adjustment that the bucket cannot have.
func (t *adjustment) read(now int64) (out limiter.Adjusted, err error) {
	sh := t.shard()
	sh.mu.Lock()
	defer sh.mu.Unlock()
	b, err := t.bucket(sh)
	if err != nil || b == nil {
		return out, err
	}
	t.limits, t.generation = b.limits, b.generation
	spends, err := t.spends(b, now)
	return t.expected(b, spends, now), err
}

// expected returns the outcome of spends of the adjustment. The shard must be locked.
func (t *adjustment) expected(b *bucket, spends []limiter.Spend, now int64) limiter.Adjusted {
	out := limiter.Adjusted{Found: true, Before: b.state(t.Bucket, now)}
	out.After = out.Before
	out.After.Limits = slices.Clone(out.Before.Limits)
	for i := range spends {
		sp, of := &spends[i], &out.After.Limits[b.limits.Find(spends[i].Limit)]
		of.Tokens += sp.Refund + t.extra(sp)
		of.Tokens -= min(sp.Charge, max(of.Tokens-of.Limit.DebtFloor(), 0))
	}
	out.Booked = t.Booked(&out.Before, &out.After)
	if t.Unfit(out.Booked) {
		out.After = out.Before
	}
	return out
}

// extra returns the millitokens that the adjustment adds beside the refund of a spend, above the capacity.
func (t *adjustment) extra(sp *limiter.Spend) int64 {
	if t.Kind != limiter.AdjustTopUp || t.Excess != limiter.ExcessKept {
		return 0
	}
	return t.Tokens - sp.Refund
}

// raise adds the millitokens above the capacity, after the refunds.
func (t *adjustment) raise(b *bucket, spends []limiter.Spend, now int64) error {
	for i := range spends {
		if extra := t.extra(&spends[i]); extra > 0 {
			k := b.limits.Find(spends[i].Limit)
			raised, err := t.Raised(b.limits.At(k), b.limits.Params(k), *b.balance(k), extra, now)
			if err != nil { // impossible: spends refuses it
				return err
			}
			*b.balance(k) = raised
		}
	}
	return nil
}

// spends returns the charges and refunds of the limits of a bucket. A refund has its room.
func (t *adjustment) spends(b *bucket, now int64) ([]limiter.Spend, error) {
	var all []limiter.Spend
	for i := range b.limits.Len() {
		l := b.limits.At(i)
		if t.Limit != "" && l.Name != t.Limit || l.Unlimited {
			continue
		}
		p := b.limits.Params(i)
		balance := b.balance(i).Refill(p, now)
		tokens := balance.Tokens
		room := max(p.Capacity-tokens, 0)
		sp := limiter.Spend{Limit: l.Name}
		switch t.Kind {
		case limiter.AdjustReset:
			sp.Refund = room
		case limiter.AdjustSet:
			target, err := t.Target(l, max(balance.Carried, 0))
			if err != nil {
				return nil, err
			}
			sp.Refund, sp.Charge = max(target-tokens, 0), max(tokens-target, 0)
		case limiter.AdjustTopUp:
			sp.Refund = min(t.Tokens, room)
			if t.Excess == limiter.ExcessKept {
				if _, err := t.Raised(l, p, *b.balance(i), t.Tokens, now); err != nil {
					return nil, err
				}
			}
		case limiter.AdjustTakeOut:
			sp.Charge = t.Tokens
		}
		sp.Refund, sp.Charge = min(sp.Refund, tokenbucket.MaxAmount), min(sp.Charge, tokenbucket.MaxAmount)
		all = append(all, sp)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%w: the bucket holds no limit %q", limiter.ErrInvalid, t.Bucket.Shown(t.Limit))
	}
	return all, nil
}

// try makes the adjustment, unless the file does not cover it yet. In both cases wait is the
// commit to wait for, nil for none.
func (t *adjustment) try(now int64, out *limiter.Adjusted) (done bool, wait *batch, err error) {
	sh := t.shard()
	sh.mu.Lock()
	defer sh.mu.Unlock()
	b, err := t.bucket(sh)
	if err == nil && b == nil { // full and idle, it was dropped after it was read
		again := limiter.Op{Bucket: t.Bucket, Limits: t.limits, Generation: t.generation}
		b, _, err = t.balances.table.open(sh, t.hash, now, &again)
		if err == nil && b == nil {
			err = fmt.Errorf("%w: the store has no room for the bucket", limiter.ErrUnavailable)
		}
	}
	if err != nil {
		return false, nil, err
	}
	op := limiter.Op{Bucket: t.Bucket, Limits: b.limits, Generation: b.generation}
	op.Spends, err = t.spends(b, now)
	if err != nil {
		return false, nil, err
	}
	if *out = t.expected(b, op.Spends, now); t.Unfit(out.Booked) {
		return true, nil, nil
	}
	b.prepare(&op, now)
	if t.balances.disk == nil {
		b.finish(&op, true)
	} else {
		wait, done = t.account(sh, b, &op, now)
		if !done {
			return false, wait, nil
		}
	}
	if err := t.raise(b, op.Spends, now); err != nil {
		return false, nil, err
	}
	if t.Kind == limiter.AdjustReset {
		t.renew(b, now)
	}
	out.After = b.state(t.Bucket, now)
	out.Booked = t.Booked(&out.Before, &out.After)
	t.settle(b, out.Booked)
	return true, wait, nil
}

// account is finish with a file: the file must cover the tokens that are taken. An adjustment is
// neither usage nor an event.
func (t *adjustment) account(sh *shard, b *bucket, op *limiter.Op, now int64) (wait *batch, done bool) {
	if b.block == nil {
		b.block = storedBlock(b.limits, now)
	}
	if !b.covers(op, true) {
		return t.balances.disk.want(sh, t.hash, b), false
	}
	k := b.block
	if now >= (k.hour+1)*hourMs {
		b.endHour(hourOf(now)) // usage so far belongs to the hours before
	}
	used, events := make([]int64, b.limits.Len()), k.events
	for i := range used {
		used[i] = k.span(i).used
	}
	b.account(op, now, true)
	k.events = events
	for i := range used {
		s := k.span(i)
		s.used = used[i]
		s.last, s.need, s.lastNeed = 0, 0, 0
		s.size = min(s.size, s.spent) // the next block is small: a crash must not cost the tokens of a top-up
	}
	return t.balances.disk.want(sh, t.hash, b), true
}

// renew drops the use that a reset bucket has beside its balances.
func (t *adjustment) renew(b *bucket, now int64) {
	for i := range b.limits.Len() {
		if name := b.limits.At(i).Name; !b.limits.Unlimited(i) && (t.Limit == "" || t.Limit == name) && b.balance(i).Extra() == 0 {
			*b.balance(i) = tokenbucket.Full(b.limits.Params(i), max(now, b.balance(i).Refilled))
		}
	}
	if t.Limit == "" && b.rest != nil {
		b.rest.dormant, b.rest.forgotten = nil, forgotten{}
	}
}
