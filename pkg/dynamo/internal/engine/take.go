package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/awsdb"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/lane"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/plan"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/shards"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// call is a Take that waits for its requests, round by round.
type call struct {
	engine   *Engine
	branches []*branch
	sent     []*lane.Request // of this round
	requests []*lane.Request // of all rounds
	deadline time.Time       // of the caller; zero = none
	ahead    int64           // ms that the corrected clock was ahead of the caller's when the call began
}

// branch is one op of a call.
type branch struct {
	*shards.Branch
	site      lane.Site
	op        *limiter.Op
	asked     []asked
	corrected int64 // the caller's time
}

// asked is a part of a branch, and the request that asks for it.
type asked struct {
	part    *shards.Part
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
	defer c.leave()
	for c.next() {
		done := c.send() //nolint:contextcheck // a lane works for as long as the lanes do
		if e.cfg.Loop.Wait(ctx, done) != nil {
			return c.unanswered(ctx, ops)
		}
		c.harvest()
	}
	defer c.byCaller(ops)
	return c.decide(ops) //nolint:contextcheck // a lane works for as long as the lanes do
}

// newCall turns ops into branches. It refuses amounts that are out of range.
func (e *Engine) newCall(ctx context.Context, now time.Time, ops []limiter.Op) (*call, error) {
	c := &call{engine: e, branches: make([]*branch, len(ops))}
	c.deadline, _ = ctx.Deadline()
	at := e.cfg.Clock.Correct(e.cfg.Clock.Steady(now)).UnixMilli()
	c.ahead = at - now.UnixMilli()
	for i := range ops {
		r, err := plan.NewRequest(&ops[i])
		if err != nil {
			return nil, fmt.Errorf("op %d: %w", i, err)
		}
		id, err := e.cfg.Namespace(ctx, ops[i].Bucket.Namespace)
		if err != nil {
			return nil, err
		}
		b := &branch{op: &ops[i], site: lane.Site{Namespace: id, Bucket: cloneKey(ops[i].Bucket)}, corrected: at}
		b.Branch = shards.NewBranch(shards.ID{Namespace: id, Bucket: b.site.Bucket}, r, ops[i].Shard, at)
		c.branches[i] = b
	}
	return c, nil
}

func cloneKey(k limiter.BucketKey) limiter.BucketKey {
	k.Namespace, k.Entity, k.Resource = strings.Clone(k.Namespace), strings.Clone(k.Entity), strings.Clone(k.Resource)
	return k
}

// next begins a round, and reports whether there is one: not when a branch has got less
// than it wants, and has nothing more to try.
func (c *call) next() bool {
	c.sent = nil
	now := c.engine.cfg.Now()
	for _, b := range c.branches {
		for _, p := range b.Next(&c.engine.forest, now) {
			r := &lane.Request{
				Request: p.Request, Site: &b.site, Index: p.Index, At: b.corrected, Keep: b.op.KeepTaken, Policy: b.op.Lease, Asks: asks(b.op), Deadline: c.deadline,
			}
			b.asked = append(b.asked, asked{part: p, request: r})
			c.sent = append(c.sent, r)
		}
		if b.Denied() {
			return false
		}
	}
	return len(c.sent) > 0
}

// send hands the requests of a round to their lanes. It returns a channel that is
// closed when all have an end.
func (c *call) send() <-chan struct{} {
	wait := lane.NewWait(len(c.sent))
	for _, r := range c.sent {
		r.Wait = wait
	}
	c.requests = append(c.requests, c.sent...)
	if c.engine.lanes.ServeTogether(c.sent) {
		return wait.Done()
	}
	for _, r := range c.sent {
		c.engine.lanes.Send(r)
	}
	return wait.Done()
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

// leave ends the call's claims.
func (c *call) leave() {
	for _, b := range c.branches {
		b.Leave()
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
			admitted = admitted && err == nil
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
	now := c.engine.cfg.Now()
	for i, b := range c.branches {
		b.Report(&ops[i], admitted, now)
	}
	return admitted, nil
}

// giveBack rolls back the takes of a call that is not admitted. Where the call failed, and
// its caller is admitted all the same, the tokens stay taken.
func (c *call) giveBack(failed error) {
	for _, b := range c.branches {
		for _, a := range b.asked {
			if !a.late && (!a.request.Keep || failed == nil || errors.Is(failed, limiter.ErrInvalid)) {
				c.engine.lanes.GiveBack(a.request)
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
