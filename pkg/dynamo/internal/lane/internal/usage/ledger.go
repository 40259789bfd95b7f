package usage

import (
	"slices"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/lease"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/plan"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Ledger is the consumption from the leases of a replica on one item that the item does not count
// yet: in millitokens, net of refunds. The zero Ledger is empty. It must be locked by its user.
type Ledger struct {
	basis basis
	spent []int64         // by limit of the basis
	rests []*plan.Request // of limits that a lease is under no more
	open  []*Report       // of lease writes whose outcome is not known
}

// basis is the limits of a lease.
type basis struct {
	limits     *limiter.Limits
	generation uint64
	index      []int // of the leased limits among all
}

// Report is the consumption that a lease write counts.
type Report struct {
	basis basis
	spent []int64
	base  *schema.Bucket // the state that the write rests on
	write *plan.Write
}

// Begin has the ledger note consumption of a lease on some limits, given by their index among all.
func (g *Ledger) Begin(limits *limiter.Limits, generation uint64, index []int) {
	if limits == g.basis.limits {
		return
	}
	g.retire()
	g.basis, g.spent = basis{limits, generation, index}, make([]int64, len(index))
}

// Add notes the consumption of a leased limit; below 0 it is refunded.
func (g *Ledger) Add(limit int, amount int64) { g.spent[limit] += amount }

// Draw notes draws as consumed.
func (g *Ledger) Draw(draws []lease.Draw) {
	for i := range draws {
		g.spent[draws[i].Limit] += draws[i].Take
	}
}

// Report moves the consumption to a report, and returns it with its amounts by index of the limits, as
// for [plan.LeaseWrite]; nil = there is none. It is for one lease write: Sent or Unsent follows.
func (g *Ledger) Report() (*Report, []int64) {
	if g.empty() && len(g.open) == 0 {
		return nil, nil
	}
	r := &Report{basis: g.basis, spent: g.spent}
	g.spent = make([]int64, len(r.spent))
	amounts := make([]int64, r.basis.limits.Len())
	for k, i := range r.basis.index {
		amounts[i] = r.spent[k]
	}
	return r, amounts
}

// Sent says that a report leaves with a write that rests on a state. [Ledger.Saw] tells its outcome.
func (g *Ledger) Sent(r *Report, base *schema.Bucket, w *plan.Write) {
	r.base, r.write = base, w
	g.open = append(g.open, r)
}

// Unsent says that the write of a report was certainly not sent: its amounts are to be counted yet.
func (g *Ledger) Unsent(r *Report) {
	g.open = slices.DeleteFunc(g.open, func(o *Report) bool { return o == r })
	if r.basis.limits == g.basis.limits {
		for k, n := range r.spent {
			g.spent[k] += n
		}
		return
	}
	g.rest(r.basis, r.spent)
}

// Saw ends the reports whose outcome a state of the item tells; nil = there is no item. Where no state
// can tell it any more, the report counts as applied.
func (g *Ledger) Saw(state *schema.Bucket) {
	if state == nil { // its counters are gone with it
		*g = Ledger{basis: g.basis, spent: make([]int64, len(g.spent))}
		return
	}
	if len(g.open) == 0 {
		return
	}
	open := g.open
	landed := slices.IndexFunc(open, func(r *Report) bool { return r.write.Outcome(state) == plan.Landed })
	g.open = nil
	for i, r := range open {
		outcome := r.write.Outcome(state)
		if landed >= 0 && i != landed && same(r.base, open[landed].base) { // of two on one state one is applied
			outcome = plan.Dead
		}
		switch outcome {
		case plan.Open:
			g.open = append(g.open, r)
		case plan.Dead:
			g.Unsent(r)
		case plan.Landed, plan.Lost:
		}
	}
}

// same reports whether two states are of one version of an item.
func same(x, y *schema.Bucket) bool { return x.Serial == y.Serial && x.Shard.Epoch == y.Shard.Epoch }

// Rests takes out the requests that count what no lease write will. over says that no lease is left
// that could report.
func (g *Ledger) Rests(over bool) []*plan.Request {
	if over {
		g.retire()
	}
	rests := g.rests
	g.rests = nil
	return rests
}

// retire makes a rest of the consumption.
func (g *Ledger) retire() {
	if !g.empty() {
		g.rest(g.basis, g.spent)
		clear(g.spent)
	}
}

// empty reports whether the lease has nothing to count.
func (g *Ledger) empty() bool {
	return !slices.ContainsFunc(g.spent, func(n int64) bool { return n != 0 })
}

// rest adds a request that counts a consumption alone.
func (g *Ledger) rest(b basis, spent []int64) {
	r := &plan.Request{Limits: b.limits, Generation: b.generation}
	for k, i := range b.index {
		if spent[k] != 0 {
			r.Spends = append(r.Spends, plan.Spend{Limit: b.limits.At(i).Name, Usage: spent[k]})
		}
	}
	if len(r.Spends) > 0 {
		g.rests = append(g.rests, r)
	}
}
