package limiter

import (
	"context"
	"errors"
	"time"
)

// unanswered decides by policy when the store is unavailable, which the store reports by its error.
func (l *Limiter) unanswered(ctx context.Context, now time.Time, req *Request, d *Decision, cause error) error {
	if !errors.Is(cause, ErrUnavailable) && !errors.Is(cause, ErrUncertain) {
		return cause // closed or invalid: never admitted
	}
	d.Late, d.Policy, d.Unavailable = false, d.scratch.decides, cause
	if d.Policy == Unset {
		d.Policy = l.policy(req, d)
	}
	switch d.Policy {
	case Allow:
		d.Admitted, d.Reason = true, ReasonNone
	case Local:
		l.decideLocally(context.WithoutCancel(ctx), now, req, d)
	case Deny, Unset:
		d.Admitted, d.Reason = false, ReasonUnavailable
	}
	return nil
}

// unresolved decides by policy when records could not be read. A request that takes from a subject
// last seen as disabled, or from a limit whose rate is 0, is denied by any policy.
func (l *Limiter) unresolved(ctx context.Context, now time.Time, req *Request, d *Decision, cause error) error {
	d.Statuses = d.Statuses[:0]
	err := l.unanswered(ctx, now, req, d, cause)
	if err != nil || d.Policy != Allow || l.cache == nil {
		return err
	}
	policy, unavailable := d.Policy, d.Unavailable
	d.reset()
	d.scratch.offline = true
	err = l.resolve(ctx, now, req, d)
	denied := err == nil && (d.Reason == ReasonDisabled || d.Reason == ReasonExceedsCapacity)
	d.Admitted, d.Policy, d.Unavailable = !denied, policy, unavailable
	if !denied {
		d.Reason, d.MissingLimit, d.Statuses = ReasonNone, "", d.Statuses[:0]
	}
	return nil
}

// policy returns the policy that decides when the store does not: the request's, else the stored
// one of the namespace as last seen, else the configuration's, else Allow.
func (l *Limiter) policy(req *Request, d *Decision) Policy {
	if req.OnUnavailable != Unset {
		return req.OnUnavailable
	}
	if d.scratch.policy != Unset {
		return d.scratch.policy
	}
	if l.cache != nil {
		if p := l.cache.lastPolicy(req.namespace()); p != Unset {
			return p
		}
	}
	if p := l.snapshotOf(req).static.OnUnavailable; p != Unset {
		return p
	}
	return Allow
}

// OnUnavailable returns the policy that would answer a request if the store did not. d is the
// decision of the same request, made before.
func (l *Limiter) OnUnavailable(req *Request, d *Decision) Policy { return l.policy(req, d) }

// decideLocally decides by a share of the limits, in the fallback's memory, with the records last
// seen and the static configuration. Requests in flight are not limited: nothing would tell the fallback
// of their ends.
func (l *Limiter) decideLocally(ctx context.Context, now time.Time, req *Request, d *Decision) {
	policy, cause := d.Policy, d.Unavailable
	d.reset()
	d.Policy, d.Unavailable, d.Reason = policy, cause, ReasonUnavailable
	if l.fallback == nil {
		return
	}
	d.scratch.offline, d.Reason = true, ReasonNone
	if err := l.resolve(ctx, now, req, d); err != nil || d.Reason != ReasonNone {
		return
	}
	share := req.LocalShare
	if share == 0 {
		share = l.snapshotOf(req).static.LocalShare
	}
	if share == 0 {
		share = 1000
	}
	ops := d.scratch.ops
	for i := range ops {
		ops[i].Limits = l.shares.of(ops[i].Limits, share)
		if ops[i].Bucket.Window.InFlight() {
			for k := range ops[i].Spends {
				ops[i].Spends[k].Take, ops[i].Spends[k].Look = 0, false
			}
		}
	}
	if len(ops) == 0 {
		d.Admitted = true
		return
	}
	admitted, err := l.fallback.Take(ctx, now, ops)
	if err != nil {
		d.Reason = ReasonUnavailable
		return
	}
	d.fill(now, req, admitted)
}
