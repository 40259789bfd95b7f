package limiter

import (
	"context"
	"time"
)

// Decide decides a request at now and writes the answer to d. If the store does not answer within
// the budget, the decision is late: by the limits and balances that this process last saw. If the
// store is unavailable, the request's policy decides. d distinguishes both from a decision of the
// store. A caller that cancels ctx is answered by the policy. An error means that there is no
// decision: [ErrInvalid] for an amount out of range, [ErrClosed] after the store was closed.
func (l *Limiter) Decide(ctx context.Context, now time.Time, req *Request, d *Decision) error {
	d.reset()
	if err := req.validate(); err != nil {
		return err
	}
	if l.local {
		return l.decide(ctx, now, req, d)
	}
	bounded := within(ctx, l.timeout)
	defer bounded.end()
	return l.decide(bounded, now, req, d) //nolint:contextcheck // bounded is a context of ctx
}

// decide is Decide of a valid request, within the deadline of ctx.
func (l *Limiter) decide(ctx context.Context, now time.Time, req *Request, d *Decision) error {
	if err := l.resolve(ctx, now, req, d); err != nil {
		return l.unresolved(ctx, now, req, d, err)
	}
	d.Late = d.scratch.late
	if d.Reason != ReasonNone {
		return l.chargeOnly(ctx, now, req, d)
	}
	if len(d.scratch.ops) == 0 {
		d.Admitted = true
		return nil
	}
	if l.denials != nil && !req.Whole && l.denials.deny(now, d.scratch.ops) {
		d.fill(now, req, false)
		return nil
	}
	if !l.local {
		l.setPolicy(req, d)
	}
	admitted, err := l.store.Take(ctx, now, d.scratch.ops)
	if err != nil {
		return l.unanswered(ctx, now, req, d, err)
	}
	l.learn(now, d.scratch.ops)
	d.fill(now, req, admitted)
	return nil
}

// setPolicy sets the policy that decides if the store does not, and whether tokens of an unanswered
// take stay taken.
func (l *Limiter) setPolicy(req *Request, d *Decision) {
	d.scratch.decides = l.policy(req, d)
	for i := range d.scratch.ops {
		d.scratch.ops[i].KeepTaken = d.scratch.decides == Allow
	}
}

// chargeOnly applies the charges and refunds of a request that is denied before the store is asked,
// for example because a limit is configured nowhere.
func (l *Limiter) chargeOnly(ctx context.Context, now time.Time, req *Request, d *Decision) error {
	ops := d.scratch.ops[:0]
	for _, op := range d.scratch.ops {
		spends := op.Spends[:0]
		for _, sp := range op.Spends {
			sp.Take, sp.Look = 0, false
			if sp.Charge > 0 || sp.Refund > 0 {
				spends = append(spends, sp)
			}
		}
		op.Spends = spends
		if len(spends) > 0 {
			ops = append(ops, op)
		}
	}
	if len(ops) == 0 {
		return nil
	}
	if _, err := l.store.Take(ctx, now, ops); err != nil {
		reason, take, limit := d.Reason, d.MissingTake, d.MissingLimit
		err = l.unanswered(ctx, now, req, d, err)
		d.Admitted, d.Reason, d.MissingTake, d.MissingLimit = false, reason, take, limit
		return err
	}
	l.learn(now, ops)
	return nil
}
