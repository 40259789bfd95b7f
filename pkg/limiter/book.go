package limiter

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Book applies a request of charges and refunds alone, and puts the balances into d. It waits as
// long as the store needs and ctx allows, and no policy answers in its place. An error is the
// store's, or [ErrInvalid] for a request that consumes. The request may be repeated unless the
// error is [ErrUncertain]: then it may have been applied. If the deadline of ctx passes first, d is
// late and the store applies the request later.
func (l *Limiter) Book(ctx context.Context, now time.Time, req *Request, d *Decision) error {
	d.reset()
	if err := req.validate(); err != nil {
		return err
	}
	for i := range req.Takes {
		if req.Takes[i].Mode == Consume {
			return fmt.Errorf("%w: take %d consumes; only charges and refunds are allowed", ErrInvalid, i)
		}
	}
	if err := l.resolve(ctx, now, req, d); err != nil {
		return err
	}
	if d.Reason != ReasonNone {
		return nil
	}
	d.Admitted = true
	if len(d.scratch.ops) == 0 {
		return nil
	}
	if _, err := l.store.Take(ctx, now, d.scratch.ops); err != nil {
		return err
	}
	l.learn(now, d.scratch.ops)
	d.fill(now, req, true)
	return nil
}

// Settle corrects a reservation to the actual use. Each bucket of the reservation is charged for
// more use of a limit, or gets a refund for less. Limits that used does not name are unchanged, and
// so are those of which no bucket gave any. Tokens in flight are given back in any case.
//
// A reservation is settled once, by one caller; won reports whether m.Owner is that one. After an
// error Settle may be repeated with the same mark, unless the error is [ErrUncertain]: then it may
// have been applied. If the process ends in between, nothing more is applied.
func (l *Limiter) Settle(ctx context.Context, now time.Time, m Mark, holdings []Holding, used []Consumption) (won bool, err error) {
	won, err = l.store.Settle(ctx, now, m)
	if err != nil || !won {
		return false, err
	}
	ops := settlement(now, holdings, used)
	if len(ops) == 0 {
		return true, nil
	}
	if _, err := l.store.Take(ctx, now, ops); err != nil {
		return true, err
	}
	l.learn(now, ops)
	return true, nil
}

// settlement returns the ops that correct the buckets of the holdings to the actual use. Several
// holdings of a bucket count together. A request in flight ends in any case.
func settlement(now time.Time, holdings []Holding, used []Consumption) []Op {
	ops := make([]Op, 0, len(holdings))
	for i := range holdings {
		h := &holdings[i]
		ends := h.Bucket.Window.InFlight()     // rule: a request in flight ends whatever it used
		if ends && h.Bucket.Window.Over(now) { // all its requests have ended
			continue
		}
		j := slices.IndexFunc(ops, func(op Op) bool { return op.Bucket == h.Bucket })
		if j < 0 {
			j = len(ops)
			ops = append(ops, Op{Bucket: h.Bucket, Limits: h.Limits, Generation: h.Generation, Shard: h.Shard})
		}
		for _, t := range h.Taken {
			amount, ok := usedOf(used, t.Limit)
			if of := h.Bucket.budgetOf(t.Limit); !ok && of != "" {
				amount, ok = usedOf(used, of)
			}
			if ends {
				amount, ok = 0, true
			}
			if ok {
				sp := ops[j].spend(t.Limit)
				sp.Refund, sp.Charge = saturatingAdd(sp.Refund, t.Amount), amount
			}
		}
	}
	for i := range ops {
		ops[i].Spends = slices.DeleteFunc(ops[i].Spends, func(sp Spend) bool { return sp.Refund == sp.Charge })
	}
	return slices.DeleteFunc(ops, func(op Op) bool { return len(op.Spends) == 0 })
}

// usedOf returns the use of a limit, and false when used does not name the limit.
func usedOf(used []Consumption, limit string) (amount int64, known bool) {
	for _, u := range used {
		if u.Limit == limit {
			amount, known = saturatingAdd(amount, u.Amount), true
		}
	}
	return amount, known
}
