package dynamofake

import (
	"context"
	"sync"
)

// Gate holds calls until it is released.
type Gate struct {
	arrived  chan struct{}
	released chan struct{}

	mu      sync.Mutex
	waiting []func() // requests of callers that have gone; applied on release
	open    bool
	some    bool
}

// NewGate returns a gate that holds.
func NewGate() *Gate {
	return &Gate{arrived: make(chan struct{}), released: make(chan struct{})}
}

// Arrived is closed when the first call waits at the gate.
func (g *Gate) Arrived() <-chan struct{} { return g.arrived }

// Release lets all calls pass, now and from now on. When it returns, the requests
// of callers that have gone and the duplicates are applied, in order of arrival.
func (g *Gate) Release() {
	g.mu.Lock()
	if g.open {
		g.mu.Unlock()
		return
	}
	g.open = true
	waiting := g.waiting
	g.mu.Unlock()
	for _, apply := range waiting {
		apply()
	}
	close(g.released)
}

// Wait waits for the release and returns true, or false when ctx ends before. Then
// abandoned, if any, is done on release. Without a gate it waits for ctx.
func (g *Gate) Wait(ctx context.Context, abandoned func()) bool {
	if g == nil {
		<-ctx.Done()
		g.Later(abandoned)
		return false
	}
	g.mu.Lock()
	if !g.some {
		g.some = true
		close(g.arrived)
	}
	g.mu.Unlock()
	select {
	case <-g.released:
		return true
	case <-ctx.Done():
		g.Later(abandoned)
		return false
	}
}

// Later does apply, if any, on release: at once when that was before, or without a
// gate.
func (g *Gate) Later(apply func()) {
	if apply == nil {
		return
	}
	if g == nil {
		apply()
		return
	}
	g.mu.Lock()
	if !g.open {
		g.waiting = append(g.waiting, apply)
		g.mu.Unlock()
		return
	}
	g.mu.Unlock()
	apply()
}
