package engine

import "github.com/ratelimit/ratelimit/pkg/internal/fleet/lane"

// Memories returns the newest states of items that the engine saw.
func (e *Engine) Memories() []lane.Memory { return e.lanes.Memories() }

// HandOver ends the engine in favour of another one of the same table, whose server has another
// history: nothing that this one plans is applied any more. The other gets the requests that this one
// owes. Calls that wait end with limiter.ErrUnavailable or limiter.ErrUncertain. Both must have the same Config.Before.
func (e *Engine) HandOver(to *Engine) {
	e.sweeper()
	e.swept.Wait()
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	e.lanes.HandOver(to.lanes)
	e.calls.Wait() // no call is served from a lease that was freed
	e.lanes.Leave()
}
