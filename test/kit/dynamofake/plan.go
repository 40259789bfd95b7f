package dynamofake

import (
	"math/rand/v2"
	"slices"
)

// Call is a call that arrived.
type Call struct {
	Op    string // such as "UpdateItem"
	Table string // "" for batches and transactions
	N     int    // 1 for the first call of Op, and so on
	Input any    // the SDK's input, which must not be changed
}

// Plan chooses the fault of a call. It is called for one call at a time, in the order
// in which they arrive, and must not call the DB.
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
