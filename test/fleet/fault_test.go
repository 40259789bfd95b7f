package fleet_test

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
)

// mostLate is how late a request is applied at most: long after its caller has given
// up on it, and on the whole decision.
const mostLate = time.Second

// faults are the faults of the calls of a run. The zero faults are none.
type faults struct {
	deck []dynamofake.Kind // each as often as it stands there
	most int               // calls from one that is spoiled to the next
}

// allFaults are the faults that the store must survive, every 70th call on average.
func allFaults() faults {
	return faults{most: 140, deck: []dynamofake.Kind{
		dynamofake.Throttle, dynamofake.Throttle, dynamofake.Throttle, dynamofake.Throttle,
		dynamofake.Conflict, dynamofake.Conflict, dynamofake.Conflict, dynamofake.ServerError,
		dynamofake.AppliedError, dynamofake.AppliedError, dynamofake.LoseReply, dynamofake.LoseReply,
		dynamofake.HoldRequest, dynamofake.HoldRequest, dynamofake.HoldReply,
	}}
}

// timelyFaults are those that leave nothing behind that is applied late. A write that
// is applied after it was sent again, and others were since, can take twice: that
// denies more than it should, and never less.
func timelyFaults() faults {
	return faults{most: 40, deck: []dynamofake.Kind{
		dynamofake.Throttle, dynamofake.Conflict, dynamofake.ServerError, dynamofake.AppliedError, dynamofake.LoseReply, dynamofake.HoldReply,
	}}
}

// require fails the test unless each of the faults was seen.
func (f faults) require(t *testing.T, p *dynamotest.Proxy) {
	t.Helper()
	if f.most > 0 {
		p.Require(t, append(f.deck, dynamofake.Partial)...)
	}
}

// lateness holds calls that are applied late, or answered late.
type lateness struct {
	under sync.WaitGroup

	mu   sync.Mutex
	lost []time.Time // when calls came whose replies were lost, or late
}

// lostIn reports whether a reply was lost of a call that came in a span of time, in
// nanoseconds since 1970.
func (l *lateness) lostIn(from, to int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.lost, func(t time.Time) bool { return t.UnixNano() >= from && t.UnixNano() <= to })
}

// lose notes that the reply to the call that comes now is lost.
func (l *lateness) lose() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost = append(l.lost, time.Now())
}

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

// plan gives a call a fault now and then, with the cards of the deck, so that every fault comes again and
// again. The first calls have none. One in four batches is answered in part.
func (l *lateness) plan(r *rand.Rand, f faults) dynamofake.Plan {
	if f.most == 0 {
		return nil
	}
	deck, most := slices.Clone(f.deck), f.most
	dealt, next, batches := 0, most, 0
	return func(c dynamofake.Call) dynamofake.Fault {
		if c.Op == "BatchGetItem" {
			batches++
			if batches%4 == 1 {
				return dynamofake.Fault{Kind: dynamofake.Partial}
			}
			return dynamofake.Fault{}
		}
		next--
		if next >= 0 {
			return dynamofake.Fault{}
		}
		next = r.IntN(most)
		if dealt%len(deck) == 0 {
			r.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
		}
		fault := dynamofake.Fault{Kind: deck[dealt%len(deck)]}
		dealt++
		if fault.Kind != dynamofake.Throttle && fault.Kind != dynamofake.Conflict {
			l.lose()
		}
		if fault.Kind == dynamofake.HoldRequest || fault.Kind == dynamofake.HoldReply {
			fault.Gate = l.gate(r)
		}
		return fault
	}
}
