package lease_test

import (
	"testing"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/lease"
)

// A few lease writes may be without an outcome, and no more: each is a candidate that every request has to be
// covered by. An image ends them.
func TestFewWritesWithoutAnOutcome(t *testing.T) {
	r := newRig(t)
	r.grant()
	open := 0
	for range 12 {
		r.load(300, 1)
		p, ok := r.h.Ask(r.now, r.clock(), 0.5)
		if !ok {
			continue
		}
		open++
		r.h.Failed(r.now, p, true)
	}
	if open == 0 || open > 4 {
		t.Fatalf("%d lease writes are without an outcome, want some, and at most 4", open)
	}
	r.touch()
	r.see()
	r.load(400, 1)
	r.ask(lease.Renew)
}

// The failure of a lease write that is over is none of the one in flight.
func TestAFailureOfAnotherWrite(t *testing.T) {
	r := newRig(t)
	r.grant()
	r.load(1000, 1)
	first := r.ask(lease.Renew)
	r.h.Failed(r.now, first, true)
	r.load(1000, 1)
	r.ask(lease.Renew)
	r.state(lease.Renewing)
	for _, perhaps := range []bool{true, false} {
		r.h.Failed(r.now, first, perhaps)
		r.state(lease.Renewing)
	}
}
