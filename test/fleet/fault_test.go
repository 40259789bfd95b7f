package fleet_test

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/ratelimit/ratelimit/internal/dynamofake"
)

// mostLate is how late a request is applied at most: long after its caller has given
// up on it, and on the whole decision.
const mostLate = time.Second

// faultKinds are the faults that a run with faults must see.
func faultKinds() []dynamofake.Kind {
	return []dynamofake.Kind{
		dynamofake.Throttle, dynamofake.Conflict, dynamofake.ServerError, dynamofake.AppliedError,
		dynamofake.LoseReply, dynamofake.HoldRequest, dynamofake.HoldReply, dynamofake.Partial,
	}
}

// lateness holds what is applied late, or answered late.
type lateness struct{ under sync.WaitGroup }

// wait waits until everything is applied.
func (l *lateness) wait() { l.under.Wait() }

// gate returns a gate that opens after a while.
func (l *lateness) gate(r *rand.Rand) *dynamofake.Gate {
	g := dynamofake.NewGate()
	l.under.Add(1)
	time.AfterFunc(time.Duration(r.Int64N(int64(mostLate))), func() {
		defer l.under.Done()
		g.Release()
	})
	return g
}

// plan spoils a call now and then, most calls after the last at the latest: with the
// cards of a deck, so that every fault comes again and again. Of the batches it
// answers one in five in part.
func (l *lateness) plan(r *rand.Rand, most int) dynamofake.Plan {
	deck := []dynamofake.Kind{
		dynamofake.Throttle, dynamofake.Throttle, dynamofake.Throttle, dynamofake.Throttle,
		dynamofake.Conflict, dynamofake.Conflict, dynamofake.Conflict, dynamofake.ServerError,
		dynamofake.AppliedError, dynamofake.AppliedError, dynamofake.LoseReply, dynamofake.LoseReply,
		dynamofake.HoldRequest, dynamofake.HoldRequest, dynamofake.HoldReply,
	}
	dealt, next := 0, r.IntN(most)
	return func(c dynamofake.Call) dynamofake.Fault {
		if c.Op == "BatchGetItem" {
			if r.IntN(5) == 0 {
				return dynamofake.Fault{Kind: dynamofake.Partial}
			}
			return dynamofake.Fault{}
		}
		if next--; next >= 0 {
			return dynamofake.Fault{}
		}
		next = r.IntN(most)
		if dealt%len(deck) == 0 {
			r.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
		}
		f := dynamofake.Fault{Kind: deck[dealt%len(deck)]}
		dealt++
		if f.Kind == dynamofake.HoldRequest || f.Kind == dynamofake.HoldReply {
			f.Gate = l.gate(r)
		}
		return f
	}
}
