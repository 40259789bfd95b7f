package lane

import (
	"slices"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/lease"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Ledger is the consumption from the leases of a replica on one item that the item does not count
// yet: in millitokens, net of refunds. The zero Ledger is empty. It must be locked by its user.
type Ledger struct {
	account *account        // of the lease; nil = none so far
	olds    []*account      // of limits that a lease is under no more, while reports of theirs are open
	rests   []*plan.Request // of those without
	open    []*Report       // of lease writes whose outcome is not known; all rest on one state
}

// account is the consumption under some limits that no write is known to have counted.
type account struct {
	limits     *limiter.Limits
	generation uint64
	index      []int // of the leased limits among all
	spent      []int64
}

// Report is the consumption that a lease write counts: all that is not known to be counted. The
// item takes one of several reports on one state, so each report includes those before it.
type Report struct {
	account *account
	spent   []int64
	write   *plan.Write
}

// Begin has the ledger note consumption of a lease on some limits, given by their index among all.
func (g *Ledger) Begin(limits *limiter.Limits, generation uint64, index []int) {
	if g.account != nil && limits == g.account.limits {
		return
	}
	g.retire()
	g.account = &account{limits, generation, index, make([]int64, len(index))}
}

// Add notes the consumption of a leased limit; below 0 it is refunded.
func (g *Ledger) Add(limit int, amount int64) { g.account.spent[limit] += amount }

// Draw notes draws as consumed.
func (g *Ledger) Draw(draws []lease.Draw) {
	for i := range draws {
		g.account.spent[draws[i].Limit] += draws[i].Take
	}
}

// Pending reports whether there is a consumption that no write is known to have counted, and no rest
// that was taken out.
func (g *Ledger) Pending() bool {
	return len(g.open)+len(g.olds)+len(g.rests) > 0 || g.account != nil && !g.account.empty()
}

// Open reports whether the counted part can be found by an image of the item alone.
func (g *Ledger) Open() bool { return len(g.open) > 0 }

// Report returns a report with its amounts by index of the limits, as for [plan.LeaseWrite]; nil = there
// is none. It is for one lease write, see [Ledger.Sent].
func (g *Ledger) Report() (*Report, []int64) {
	a := g.account
	if a.empty() && len(g.open) == 0 {
		return nil, nil
	}
	r := &Report{account: a, spent: slices.Clone(a.spent)}
	amounts := make([]int64, a.limits.Len())
	for k, i := range a.index {
		amounts[i] = r.spent[k]
	}
	return r, amounts
}

// Sent notes that a report leaves with a write. [Ledger.Applied], [Ledger.Unsent] or [Ledger.Saw]
// notes its outcome.
func (g *Ledger) Sent(r *Report, w *plan.Write) {
	r.write = w
	g.open = append(g.open, r)
}

// Unsent says that the write of a report was certainly not sent.
func (g *Ledger) Unsent(r *Report) {
	g.open = slices.DeleteFunc(g.open, func(o *Report) bool { return o == r })
	g.settle()
}

// Applied says that the write of a report was applied, by its own reply. No other one on that state was.
func (g *Ledger) Applied(r *Report) {
	g.open = nil
	r.book()
	g.settle()
}

// Saw ends the reports whose outcome a state of the item shows; nil = there is no item. Where no state can
// show it any more, the report counts as applied. Returned is the consumption that may not be counted.
func (g *Ledger) Saw(state *schema.Bucket) (doubtful int64) {
	if state == nil { // its counters are gone with it
		lost, perhaps := g.Drop()
		return lost + perhaps
	}
	var landed, lost *Report
	for _, r := range g.open {
		switch r.write.Outcome(state) {
		case plan.Open:
			return 0
		case plan.Landed:
			landed = r
		case plan.Lost:
			lost = r // the last one includes those before it
		case plan.Dead:
		}
	}
	g.open = nil
	switch {
	case landed != nil:
		landed.book() // rule: of several reports on one state one counts
	case lost != nil:
		lost.book()
		doubtful = gross(lost.spent)
	}
	g.settle()
	return doubtful
}

// Drop forgets all consumption, and returns how much is certainly not counted, and how much may be.
func (g *Ledger) Drop() (lost, doubtful int64) {
	if n := len(g.open); n > 0 {
		last := g.open[n-1]
		last.book()
		doubtful, g.open = gross(last.spent), nil
	}
	g.settle()
	for _, rest := range g.Rests(true) {
		for i := range rest.Spends {
			lost += max(rest.Spends[i].Usage, -rest.Spends[i].Usage)
		}
	}
	return lost, doubtful
}

// Rests takes out the requests that count the consumption that no lease write will. over says that
// no lease is left that could report.
func (g *Ledger) Rests(over bool) []*plan.Request {
	if over && len(g.open) == 0 && g.account != nil {
		g.rest(g.account)
	}
	rests := g.rests
	g.rests = nil
	return rests
}

// retire ends the account of the lease.
func (g *Ledger) retire() {
	if g.account != nil {
		g.olds = append(g.olds, g.account)
	}
	g.settle()
}

// settle makes rests of the accounts of before, once no report is open.
func (g *Ledger) settle() {
	if len(g.open) > 0 {
		return
	}
	for _, a := range g.olds {
		g.rest(a)
	}
	g.olds = nil
}

// rest makes a request that only counts the consumption of an account.
func (g *Ledger) rest(a *account) {
	if a.empty() {
		return
	}
	r := &plan.Request{Limits: a.limits, Generation: a.generation}
	for k, i := range a.index {
		if a.spent[k] != 0 {
			r.Spends = append(r.Spends, plan.Spend{Limit: a.limits.At(i).Name, Usage: a.spent[k]})
		}
	}
	clear(a.spent)
	g.rests = append(g.rests, r)
}

// empty reports whether there is nothing to count.
func (a *account) empty() bool {
	return !slices.ContainsFunc(a.spent, func(n int64) bool { return n != 0 })
}

// book takes out the consumption that a write has counted.
func (r *Report) book() {
	for k, n := range r.spent {
		r.account.spent[k] -= n
	}
}

// gross returns the sum of the consumed and the refunded amounts.
func gross(spent []int64) (total int64) {
	for _, n := range spent {
		total += max(n, -n)
	}
	return total
}
