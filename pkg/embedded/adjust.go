package embedded

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// AdjustBucket implements limiter.Buckets. With a file it returns when the file has the new
// balance. The event is written before the balance: a crash can leave one without a change.
func (b *balances) AdjustBucket(ctx context.Context, now time.Time, a limiter.Adjustment) (limiter.Adjusted, error) {
	if err := a.Check(); err != nil {
		return limiter.Adjusted{}, err
	}
	if err := b.catalog.usable(ctx); err != nil {
		return limiter.Adjusted{}, err
	}
	t := adjustment{Adjustment: a, balances: b, hash: b.table.hash(&a.Bucket)}
	out, err := t.look(now.UnixMilli())
	if err != nil || !out.Found {
		return out, err
	}
	if a.Once != "" {
		if won, err := b.settlements.Settle(ctx, now, t.mark(now)); err != nil || !won {
			out.Repeated, out.After = err == nil, out.Before
			return out, err
		}
	}
	if err := t.tell(ctx); err != nil {
		return limiter.Adjusted{}, err
	}
	for {
		done, wait, err := t.try(now.UnixMilli(), &out)
		if err == nil && wait != nil {
			err = wait.wait(ctx)
		}
		switch {
		case err != nil && done: // it is made in memory
			return limiter.Adjusted{}, fmt.Errorf("%w: %w", limiter.ErrUncertain, err)
		case err != nil || done:
			return out, err
		}
	}
}

// adjustment is one that is under way.
type adjustment struct {
	limiter.Adjustment

	balances *balances
	hash     uint64
}

// mark returns the mark by which one adjustment of a Once is made. Its owner is this call.
func (t *adjustment) mark(now time.Time) limiter.Mark {
	sum := sha256.Sum256([]byte(t.Once))
	return limiter.Mark{
		Namespace: t.Bucket.Namespace, ID: "adjust/" + base64.RawURLEncoding.EncodeToString(sum[:]),
		Owner: rand.Text(), Expires: now.Add(limiter.OnceAge),
	}
}

// tell writes the audit event. A store without a file keeps none.
func (t *adjustment) tell(ctx context.Context) error {
	if t.balances.disk == nil {
		return nil
	}
	return t.balances.catalog.change(ctx, t.Bucket.Namespace, func(c *edit) error {
		c.say(t.Kind.Action(), limiter.EntityLimitsRef(t.Bucket.Entity, t.Bucket.Resource), t.Detail(&limiter.Adjusted{}))
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

// look returns the bucket as it is, and refuses an adjustment that it cannot have.
func (t *adjustment) look(now int64) (out limiter.Adjusted, err error) {
	sh := t.shard()
	sh.mu.Lock()
	defer sh.mu.Unlock()
	b, err := t.bucket(sh)
	if err != nil || b == nil {
		return out, err
	}
	out.Found, out.Before = true, b.state(t.Bucket, now)
	_, err = t.spends(b, now)
	return out, err
}

// spends returns the charges and refunds of the limits of a bucket.
func (t *adjustment) spends(b *bucket, now int64) ([]limiter.Spend, error) {
	var all []limiter.Spend
	for i := range b.limits.Len() {
		l := b.limits.At(i)
		if t.Limit != "" && l.Name != t.Limit || l.Unlimited {
			continue
		}
		p := b.limits.Params(i)
		tokens := b.balance(i).Refill(p, now).Tokens
		sp := limiter.Spend{Limit: l.Name}
		switch t.Kind {
		case limiter.AdjustReset:
			sp.Refund = p.Capacity - tokens
		case limiter.AdjustSet:
			if t.Tokens > p.Capacity {
				return nil, fmt.Errorf("%w: limit %s holds at most %d tokens", limiter.ErrInvalid, l.Name, l.Capacity)
			}
			sp.Refund, sp.Charge = max(t.Tokens-tokens, 0), max(tokens-t.Tokens, 0)
		case limiter.AdjustTopUp:
			sp.Refund = t.Tokens
		case limiter.AdjustTakeOut:
			sp.Charge = t.Tokens
		}
		sp.Refund, sp.Charge = min(sp.Refund, tokenbucket.MaxAmount), min(sp.Charge, tokenbucket.MaxAmount)
		all = append(all, sp)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%w: the bucket holds no limit %q", limiter.ErrInvalid, t.Limit)
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
	if err != nil || b == nil { // it was full and idle since it was looked at
		out.After = out.Before
		return true, nil, err
	}
	op := limiter.Op{Bucket: t.Bucket, Limits: b.limits, Generation: b.generation}
	if op.Spends, err = t.spends(b, now); err != nil {
		return false, nil, err
	}
	out.Before = b.state(t.Bucket, now)
	if b.prepare(&op, now); t.balances.disk == nil {
		b.finish(&op, true)
	} else if wait, done = t.account(sh, b, &op, now); !done {
		return false, wait, nil
	}
	if t.Kind == limiter.AdjustReset {
		t.renew(b, now)
	}
	out.After = b.state(t.Bucket, now)
	return true, wait, nil
}

// account is finish with a file: the file must cover the tokens that are taken. None is usage, nor an event.
func (t *adjustment) account(sh *shard, b *bucket, op *limiter.Op, now int64) (wait *batch, done bool) {
	if b.block == nil {
		b.block = storedBlock(b.limits, now)
	}
	if !b.covers(op, true) {
		return t.balances.disk.want(sh, t.hash, b), false
	}
	k := b.block
	if now >= (k.hour+1)*hourMs {
		b.turn(hourOf(now)) // what was used so far is of the hours before
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
		s.last, s.need, s.kept = 0, 0, 0
		s.size = min(s.size, s.spent) // the next block is a small one: a crash must not cost what was given
	}
	return t.balances.disk.want(sh, t.hash, b), true
}

// renew forgets the use that a reset bucket remembers beside its balances.
func (t *adjustment) renew(b *bucket, now int64) {
	for i := range b.limits.Len() {
		if name := b.limits.At(i).Name; !b.limits.Unlimited(i) && (t.Limit == "" || t.Limit == name) {
			*b.balance(i) = tokenbucket.Full(b.limits.Params(i), max(now, b.balance(i).Refilled))
		}
	}
	if t.Limit == "" && b.rest != nil {
		b.rest.dormant, b.rest.forgotten = nil, forgotten{}
	}
}
