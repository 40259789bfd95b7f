package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// Request is one op on one item: its spends are decided all or nothing. It shares no
// memory with the caller of the store.
type Request struct {
	Limits     *limiter.Limits
	Generation uint64
	Spends     []Spend

	// Set by Stage.Weigh and Stage.Apply, and corrected by Write.Settle:

	Admitted bool
	Under    *limiter.Limits // limits that the bucket is under
}

// Spend is the part of a request that concerns one limit. Amounts are millitokens, 0 to
// tokenbucket.MaxAmount. At least one of Give and Cost is 0.
type Spend struct {
	Limit  string
	Ask    int64 // above 0: as much of it as is there is needed and taken, instead of Need and Take
	Need   int64 // balance that must be there; 0 = none
	Take   int64 // taken if the request is admitted
	Give   int64 // added in any outcome, up to the room, before Need is checked
	Above  int64 // the part of Give that was taken from an extra, which it adds to again
	Cost   int64 // subtracted in any outcome, after Take, down to the debt floor
	Usage  int64 // counted as consumed in any outcome, net; Take is added to it if it is taken
	Forced bool  // Cost passes the debt floor

	// Set by Stage.Weigh and Stage.Apply, and corrected by Write.Settle:

	Held     bool               // the bucket has the limit, and not as unlimited
	Exceeded bool               // Need was not there
	Found    int64              // the balance that Need was held against
	Left     tokenbucket.Bucket // after the decision, at the time of the stage; Remainder in 1/Period of the shard's share
	Back     int64              // to be added to Left when the take is rolled back
	Extra    int64              // the part of the take that was above the capacity
}

// NewRequest returns the request of an op. It refuses amounts out of range with
// limiter.ErrInvalid.
func NewRequest(op *limiter.Op) (*Request, error) {
	r := &Request{}
	if err := r.Set(op); err != nil {
		return nil, err
	}
	return r, nil
}

// Set makes it the request of an op, in the memory of its spends. It refuses the same ops as [NewRequest].
func (r *Request) Set(op *limiter.Op) error {
	if op.Limits.Len() == 0 || len(op.Spends) == 0 {
		return fmt.Errorf("%w: no limits or no spends", limiter.ErrInvalid)
	}
	*r = Request{Limits: op.Limits, Generation: op.Generation, Spends: slices.Grow(r.Spends[:0], len(op.Spends))[:len(op.Spends)]}
	for i := range op.Spends {
		sp := &op.Spends[i]
		for _, amount := range [...]int64{sp.Take, sp.Charge, sp.Refund} {
			if amount < 0 || amount > tokenbucket.MaxAmount {
				return fmt.Errorf("%w: %d millitokens of limit %q; it must be 0 to %d", limiter.ErrInvalid, amount, sp.Limit, int64(tokenbucket.MaxAmount))
			}
		}
		s := &r.Spends[i]
		*s = Spend{Limit: limitName(op.Limits, sp.Limit), Need: sp.Take, Take: sp.Take, Usage: sp.Charge - sp.Refund}
		s.Give, s.Cost = max(-s.Usage, 0), max(s.Usage, 0)
		if sp.Look {
			s.Need = max(s.Need, limiter.Milli)
		}
	}
	return nil
}

// limitName returns a limit's name in memory of the limits, where it is one of them.
func limitName(limits *limiter.Limits, name string) string {
	if i := limits.Find(name); i >= 0 {
		return limits.At(i).Name
	}
	return strings.Clone(name)
}

// Gives reports whether the request adds tokens. Such requests are best applied first.
func (r *Request) Gives() bool {
	return slices.ContainsFunc(r.Spends, func(sp Spend) bool { return sp.Give > 0 })
}

// Books reports whether the request gives or charges tokens. No two writes may then do
// that, even if their replies are lost.
func (r *Request) Books() bool {
	return slices.ContainsFunc(r.Spends, func(sp Spend) bool { return sp.Give > 0 || sp.Cost > 0 })
}

// Counts reports whether the request counts a consumption in any outcome.
func (r *Request) Counts() bool {
	return slices.ContainsFunc(r.Spends, func(sp Spend) bool { return sp.Usage != 0 })
}

// Wants returns how much the request wants of a limit, in millitokens.
func (r *Request) Wants(limit string) int64 {
	for i := range r.Spends {
		if sp := &r.Spends[i]; sp.Limit == limit {
			return max(sp.Take, sp.Ask) + sp.Cost
		}
	}
	return 0
}

// Forces reports whether the request charges below the debt floor.
func (r *Request) Forces() bool {
	return slices.ContainsFunc(r.Spends, func(sp Spend) bool { return sp.Forced })
}

// Takes reports whether the request takes tokens, as it was last weighed.
func (r *Request) Takes() bool {
	return r.Admitted && slices.ContainsFunc(r.Spends, func(sp Spend) bool { return sp.Held && sp.Take > 0 })
}

// Report fills in the results of an op, see limiter.Store. stands says that its takes stand.
func (r *Request) Report(op *limiter.Op, stands bool) {
	for i := range op.Spends {
		sp, s := &op.Spends[i], &r.Spends[i]
		sp.Held, sp.Exceeded = s.Held, s.Exceeded
		if !s.Held {
			sp.Limits, sp.Index, sp.Bucket = nil, 0, tokenbucket.Bucket{}
			continue
		}
		sp.Limits, sp.Index, sp.Bucket = r.Under, r.Under.Find(s.Limit), s.Left
		if !stands {
			sp.Bucket.Tokens += s.Back
		}
	}
}

// Undo returns the request that rolls back the takes of this one; nil = it took nothing.
// If the take's charge was cut for want of tokens, that request charges the rest.
func (r *Request) Undo() *Request {
	if !r.Takes() {
		return nil
	}
	u := &Request{Limits: r.Limits, Generation: r.Generation}
	for i := range r.Spends {
		if s := &r.Spends[i]; s.Held && s.Take > 0 {
			u.Spends = append(u.Spends, Spend{Limit: s.Limit, Give: s.Back, Above: min(s.Extra, s.Back), Usage: -s.Take})
		}
	}
	return u
}

// Join adds what another request books to this one, and reports whether it did. It does where both only charge the
// same limits in the same way, or both only give to them: one write of the sum does then what two writes do.
func (r *Request) Join(other *Request) bool {
	if r.Generation != other.Generation || r.Limits.Hash() != other.Limits.Hash() || !slices.EqualFunc(r.Spends, other.Spends, joins) {
		return false
	}
	for i := range r.Spends {
		r.Spends[i].Give += other.Spends[i].Give
		r.Spends[i].Cost += other.Spends[i].Cost
		r.Spends[i].Usage += other.Spends[i].Usage
	}
	return true
}

// joins reports whether two spends only charge the same limit, or only give to it, and their sum is in range.
func joins(a, b Spend) bool {
	books := func(s Spend) bool { return s.Ask == 0 && s.Need == 0 && s.Take == 0 && s.Above == 0 }
	one := a.Give == 0 && b.Give == 0 || a.Cost == 0 && b.Cost == 0
	return one && a.Limit == b.Limit && a.Forced == b.Forced && books(a) && books(b) && max(a.Cost, a.Give) <= tokenbucket.MaxAmount-max(b.Cost, b.Give)
}

// Force returns the request that charges the takes and the costs of this one in full, also
// below the debt floor: of a call that was admitted late. Its refunds stay refunds.
func (r *Request) Force() *Request {
	f := &Request{Limits: r.Limits, Generation: r.Generation}
	for i := range r.Spends {
		s := &r.Spends[i]
		net := s.Cost - s.Give + s.Take
		f.Spends = append(f.Spends, Spend{Limit: s.Limit, Give: max(-net, 0), Cost: max(net, 0), Usage: s.Usage + s.Take, Forced: s.Take > 0})
	}
	return f
}

// ForceTakes is Force for the takes alone: a write has booked the rest.
func (r *Request) ForceTakes() *Request {
	takes := &Request{Limits: r.Limits, Generation: r.Generation, Spends: slices.Clone(r.Spends)}
	for i := range takes.Spends {
		takes.Spends[i].Cost, takes.Spends[i].Give, takes.Spends[i].Usage = 0, 0, 0
	}
	return takes.Force()
}
