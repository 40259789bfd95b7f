package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/lane"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// call is a Take that waits for its requests, round by round.
type call struct {
	engine     *Engine
	branches   []*branch
	sent       []*lane.Request // of this round
	requests   []*lane.Request // of all rounds
	deadline   time.Time       // of the caller; zero = none
	correction time.Duration   // of the caller's clock
	ahead      int64           // ms that the corrected clock was ahead of the caller's when the call began
	wait       lane.Wait       // for sent
	queued     bool            // a lane may keep one of the requests
}

// branch is one op of a call.
type branch struct {
	Branch

	site  lane.Site
	op    *limiter.Op
	whole plan.Request // of the op
	first lane.Request
	asked []asked
}

// asked is a part of a branch, and the request that asks for it.
type asked struct {
	part    *Part
	request *lane.Request
	late    bool // the part has a late decision, and the request is the lane's
}

// Take decides ops as limiter.Store.Take promises. All buckets are asked at once, each
// through the lane of its shard. The takes are rolled back when one of them denies; the
// call does not wait for that. Meanwhile other requests can be denied for want of these
// tokens. After a crash before the rollback they stay taken.
//
// When ctx's deadline passes and DynamoDB answers, the call is decided late: Take returns
// no error, and sets Late of all ops.
func (e *Engine) Take(ctx context.Context, now time.Time, ops []limiter.Op) (bool, error) {
	if err := e.begin(); err != nil {
		return false, err
	}
	defer e.calls.Done()
	return e.take(ctx, now, ops)
}

// take is Take of an engine that is not closed before it ends.
func (e *Engine) take(ctx context.Context, now time.Time, ops []limiter.Op) (bool, error) {
	if errors.Is(ctx.Err(), context.Canceled) {
		return false, awsdb.ContextError(ctx)
	}
	if len(ops) == 0 {
		return false, fmt.Errorf("%w: no ops", limiter.ErrInvalid)
	}
	c, err := e.newCall(ctx, now, ops)
	if err != nil {
		return false, err
	}
	defer c.end()
	for c.next() {
		if !c.send() && e.cfg.Loop.Wait(ctx, c.wait.Done()) != nil { //nolint:contextcheck // a lane works for as long as the lanes do
			return c.unanswered(ctx, ops)
		}
		c.harvest()
	}
	defer c.byCaller(ops)
	return c.decide(ops) //nolint:contextcheck // a lane works for as long as the lanes do
}

// newCall turns ops into branches. It refuses amounts that are out of range.
func (e *Engine) newCall(ctx context.Context, now time.Time, ops []limiter.Op) (*call, error) {
	c := e.freeCall()
	c.deadline, _ = ctx.Deadline()
	c.correction = e.cfg.Clock.Correction()
	at := e.cfg.Clock.Steady(now).Add(c.correction).UnixMilli()
	c.ahead = at - now.UnixMilli()
	for i := range ops {
		b := c.freeBranch()
		if err := b.whole.Set(&ops[i]); err != nil {
			return nil, fmt.Errorf("op %d: %w", i, err)
		}
		id, err := e.cfg.Namespace(ctx, ops[i].Bucket.Namespace)
		if err != nil {
			return nil, err
		}
		b.op, b.site = &ops[i], lane.Site{Namespace: id, Bucket: ops[i].Bucket}
		b.set(ShardID{Namespace: id, Bucket: b.site.Bucket}, &b.whole, ops[i].Shard, at)
	}
	return c, nil
}

// next begins a round, and reports whether there is one: not when a branch has got less
// than it wants, and has nothing more to try.
func (c *call) next() bool {
	c.sent = c.sent[:0]
	if len(c.requests) > 0 && c.met() {
		return false
	}
	for _, b := range c.branches {
		for _, p := range b.Next(&c.engine.forest, c.engine.cfg.Now) {
			r := &b.first // empty
			if len(b.asked) > 0 {
				r = &lane.Request{}
			}
			r.Request, r.Site, r.Index, r.At, r.By = p.Request, &b.site, p.Index, b.now, c.correction
			r.Keep, r.Policy, r.Asks, r.Deadline = b.op.KeepTaken, b.op.Lease, asks(b.op), c.deadline
			b.asked = append(b.asked, asked{part: p, request: r})
			c.sent = append(c.sent, r)
		}
		if b.Denied() {
			return false
		}
	}
	return len(c.sent) > 0
}

// met reports whether every branch has the tokens that it wants.
func (c *call) met() bool {
	return !slices.ContainsFunc(c.branches, func(b *branch) bool { return !b.Met() })
}

// send hands the requests of a round to their lanes. It reports whether all have an end at once.
func (c *call) send() (ended bool) {
	c.wait.Begin(len(c.sent))
	for _, r := range c.sent {
		r.Wait = &c.wait
	}
	c.requests = append(c.requests, c.sent...)
	if c.engine.lanes.ServeTogether(c.sent) {
		return true
	}
	ended = true
	for _, r := range c.sent {
		ended = c.engine.lanes.Send(r) && ended
	}
	c.queued = c.queued || !ended
	return ended
}

// harvest ends a round.
func (c *call) harvest() {
	for _, b := range c.branches {
		for _, a := range b.asked {
			if !a.late {
				a.part.Err = a.request.Err
			}
		}
		b.Harvest()
	}
}

// decide decides by the answers of the lanes.
func (c *call) decide(ops []limiter.Op) (bool, error) {
	admitted := true
	var failed error
	for i, b := range c.branches {
		admitted = admitted && b.Met()
		for _, a := range b.asked {
			err := a.part.Err
			admitted = admitted && err == nil // rule: a failed part admits no call
			if err != nil && (failed == nil || errors.Is(err, limiter.ErrUncertain)) {
				failed = fmt.Errorf("bucket %d: %w", i, err)
			}
		}
	}
	if !admitted {
		c.giveBack(failed)
	}
	if failed != nil {
		if c.booked() && !errors.Is(failed, limiter.ErrUncertain) && !errors.Is(failed, limiter.ErrInvalid) {
			failed = fmt.Errorf("%w: booked in part: %w", limiter.ErrUncertain, failed)
		}
		return false, failed
	}
	for i, b := range c.branches {
		b.Report(&ops[i], admitted, c.engine.cfg.Now)
		ops[i].ByShare = slices.ContainsFunc(b.asked, func(a asked) bool { return a.request.ByShare })
	}
	return admitted, nil
}

// giveBack rolls back the takes of a call that is not admitted. Where the call failed, and
// its caller is admitted all the same, the tokens stay taken.
func (c *call) giveBack(failed error) {
	for _, b := range c.branches {
		for _, a := range b.asked {
			if !a.late && (!a.request.Keep || failed == nil || errors.Is(failed, limiter.ErrInvalid)) { // rule: late parts are the lane's to give back
				c.engine.lanes.GiveBack(a.request) // rule: each shard of a denied call gets its part back
			}
		}
	}
}

// booked reports whether a call that is over has charged or refunded something.
func (c *call) booked() bool {
	for _, b := range c.branches {
		for _, p := range b.Parts() {
			if p.Err == nil && p.Request.Books() {
				return true
			}
		}
	}
	return false
}

// byCaller turns the times in the results of ops into those of the caller's clock. It
// uses the correction that the call began with: replies can change it meanwhile.
func (c *call) byCaller(ops []limiter.Op) {
	for i := range ops {
		for j := range ops[i].Spends {
			if sp := &ops[i].Spends[j]; sp.Held {
				sp.Bucket.Refilled -= c.ahead
			}
		}
	}
}

// asks reports whether an op takes or peeks, so that its lease policy has a meaning. An op
// that only charges or refunds comes without the rules, unless it says that nothing is
// leased.
func asks(op *limiter.Op) bool {
	if op.Lease.None {
		return true
	}
	for i := range op.Spends {
		if sp := &op.Spends[i]; sp.Take > 0 || sp.Look {
			return true
		}
	}
	return false
}
