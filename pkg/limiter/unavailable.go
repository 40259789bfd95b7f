package limiter

import (
	"context"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

// policy returns what decides when the store does not: the request's word, else
// what is stored for the namespace as last seen, else the configuration's, else Allow.
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

// decideLocally decides by a share of the limits, in the fallback's memory, with
// the records that were last seen and the static configuration.
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

// shareCache keeps the scaled form of limits, which is costly to make.
type shareCache struct{ sets *lru.Cache[shareKey, *Limits] }

type shareKey struct {
	hash  uint64
	share int64
}

func newShareCache() *shareCache {
	sets, _ := lru.New[shareKey, *Limits](1024) // fails for a size below 1 only
	return &shareCache{sets: sets}
}

func (c *shareCache) of(limits *Limits, share int64) *Limits {
	key := shareKey{limits.Hash(), share}
	if s, ok := c.sets.Get(key); ok {
		return s
	}
	s := limits.Scale(share)
	c.sets.Add(key, s)
	return s
}
