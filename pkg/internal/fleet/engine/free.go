package engine

import (
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/lane"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
)

// A call whose requests all ended at once, as the leases of this process decided them, leaves its
// memory to another call. So such a decision allocates nothing. Of any other call the lanes may
// keep requests.

// freeCall returns a call without branches, in the memory of one that ended if there is one.
func (e *Engine) freeCall() *call {
	if c, ok := e.free.Get().(*call); ok {
		return c
	}
	return &call{engine: e}
}

// freeBranch adds a branch to a call, in the memory of an earlier call if it has one.
func (c *call) freeBranch() *branch {
	n := len(c.branches)
	if n < cap(c.branches) && c.branches[:n+1][n] != nil {
		c.branches = c.branches[:n+1]
		return c.branches[n]
	}
	b := &branch{}
	c.branches = append(c.branches, b)
	return b
}

// end ends the call's claims. The call is not used after it.
func (c *call) end() {
	for _, b := range c.branches {
		b.Leave()
	}
	if c.queued {
		return
	}
	for _, b := range c.branches {
		b.clear()
	}
	clear(c.sent)
	clear(c.requests)
	c.branches, c.sent, c.requests = c.branches[:0], c.sent[:0], c.requests[:0]
	c.engine.free.Put(c)
}

// clear forgets all but the memory.
func (b *branch) clear() {
	clear(b.whole.Spends)
	clear(b.asked)
	b.Branch.clear()
	b.site, b.op, b.first = lane.Site{}, nil, lane.Request{}
	b.whole, b.asked = plan.Request{Spends: b.whole.Spends[:0]}, b.asked[:0]
}
