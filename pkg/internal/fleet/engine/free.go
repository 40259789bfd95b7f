package engine

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
	b := &branch{Branch: &Branch{}}
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
	spends := b.whole.Spends
	clear(spends)
	clear(b.asked)
	b.Branch.clear()
	*b = branch{Branch: b.Branch, asked: b.asked[:0]}
	b.whole.Spends = spends[:0]
}
