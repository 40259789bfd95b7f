package dynamofake

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Kind is what goes wrong with a call.
type Kind uint8

// The kinds of faults. After Throttle, Conflict, ServerError and Fail nothing was
// applied; with the others the call is applied.
const (
	None         Kind = iota
	Throttle          // ProvisionedThroughputExceededException
	Conflict          // TransactionConflictException; TransactionCanceledException of a transaction
	ServerError       // InternalServerError, status 500
	Fail              // Fault.Err, as the server's answer
	AppliedError      // applied, then InternalServerError
	LoseReply         // applied, then the connection is reset
	HoldRequest       // applied when Fault.Gate is released, also when the caller has gone
	HoldReply         // applied; the reply comes when Fault.Gate is released
	Duplicate         // applied, and again when Fault.Gate is released; at once without a Gate
	Partial           // a batch of which the second half is unprocessed
)

// Fault is what goes wrong with one call. The zero Fault is none.
type Fault struct {
	Kind Kind
	// Err is the answer for Fail.
	Err error
	// Gate is for HoldRequest, HoldReply and Duplicate. Several faults may share one.
	Gate *Gate
	// Latency is how long the reply takes, after the call was applied; with a
	// context that ends meanwhile the reply is lost. 0 = none.
	Latency time.Duration
}

// Call is a call that arrived.
type Call struct {
	Op    string // such as "UpdateItem"
	Table string // "" for batches and transactions
	N     int    // 1 for the first call of Op, and so on
	Input any    // the SDK's input, which must not be changed
}

// Plan says what goes wrong with a call. It is called for one call at a time, in
// the order in which they arrive, and must not call the DB.
type Plan func(Call) Fault

// Step is a fault of a script.
type Step struct {
	Op string // the operation that it waits for; "" = any
	Fault
}

// Script returns a plan of single faults: the next call that fits the first step
// that is left has its fault, and the step is done. A step with the zero Fault lets
// a call pass.
func Script(steps ...Step) Plan {
	left := slices.Clone(steps)
	return func(c Call) Fault {
		i := slices.IndexFunc(left, func(s Step) bool { return s.Op == "" || s.Op == c.Op })
		if i < 0 {
			return Fault{}
		}
		f := left[i].Fault
		left = slices.Delete(left, i, i+1)
		return f
	}
}

// Chance is a fault of a random plan.
type Chance struct {
	Op      string // "" = any
	Percent int    // of the calls of Op, 0 to 100
	Fault
}

// Random returns a plan that draws from r: each call has the first fault that fits
// it and is drawn. The same r and the same calls in the same order yield the same
// faults.
func Random(r *rand.Rand, chances ...Chance) Plan {
	chances = slices.Clone(chances)
	return func(c Call) Fault {
		for _, chance := range chances {
			if (chance.Op == "" || chance.Op == c.Op) && r.IntN(100) < chance.Percent {
				return chance.Fault
			}
		}
		return Fault{}
	}
}

// before is the answer to a call that is not applied.
func (f Fault) before(op string) error {
	switch f.Kind {
	case Throttle:
		return answered(op, &types.ProvisionedThroughputExceededException{Message: aws.String("The level of configured provisioned throughput for the table was exceeded.")})
	case Conflict:
		if op == "TransactWriteItems" {
			return answered(op, &types.TransactionCanceledException{
				Message:             aws.String("Transaction cancelled, please refer cancellation reasons for specific reasons [TransactionConflict]"),
				CancellationReasons: []types.CancellationReason{{Code: aws.String("TransactionConflict"), Message: aws.String("Transaction is ongoing for the item")}},
			})
		}
		return answered(op, &types.TransactionConflictException{Message: aws.String("Transaction is ongoing for the item")})
	case ServerError:
		return answered(op, &types.InternalServerError{Message: aws.String("Internal server error")})
	case Fail:
		return answered(op, f.Err)
	case None, AppliedError, LoseReply, HoldRequest, HoldReply, Duplicate, Partial:
	}
	return nil
}

// after is what a caller gets in place of the reply to a call that was applied.
func (f Fault) after(ctx context.Context, op string) error {
	if f.Kind == HoldReply && !f.Gate.wait(ctx, nil) {
		return canceled(ctx, op)
	}
	if f.Latency > 0 && !pause(ctx, f.Latency) {
		return canceled(ctx, op)
	}
	switch {
	case f.Kind == LoseReply:
		return lost(op)
	case f.Kind == AppliedError:
		return answered(op, &types.InternalServerError{Message: aws.String("Internal server error")})
	}
	return nil
}

// Gate holds calls until it is released.
type Gate struct {
	arrived  chan struct{}
	released chan struct{}

	mu      sync.Mutex
	waiting []func() // what is applied on release for callers that have gone
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

// wait waits for the release and returns true, or false when ctx ends before. Then
// abandoned, if any, is done on release.
func (g *Gate) wait(ctx context.Context, abandoned func()) bool {
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
		if abandoned != nil {
			g.later(abandoned)
		}
		return false
	}
}

// later does apply on release: at once when that was before, or without a gate.
func (g *Gate) later(apply func()) {
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
