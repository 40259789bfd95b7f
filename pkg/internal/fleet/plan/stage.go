package plan

import (
	"slices"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// Options say how commuting writes of a stage are made. The zero value is for a bucket
// that no other write is under way for.
type Options struct {
	// Lift is δ, in ms, 0 or more: by so much a lift raises a limit beyond the time of
	// the plan. A lift that leaves too little room for the take has none.
	Lift int64
	// Guard is from 0 to Lift, in ms: a limit that was full up to Guard ago, or sooner,
	// is lifted too.
	Guard int64
	// Doubtful says that the time is not known for certain, see the package comment: no
	// item is created.
	Doubtful bool
	// Scripts says that the server runs scripts: it knows [schema.AddAbove] and [schema.ItemWrite.OrUpdate].
	Scripts bool
}

// Verdict is the result of Stage.Weigh.
type Verdict uint8

// The verdicts.
const (
	Denied    Verdict = iota // no write: its tokens are not there
	Passed                   // no write: it passes, and changes nothing
	Commutes                 // the write commutes, with all that was applied before
	Exact                    // the write has to be an exact one, with all that was applied before
	Waits                    // no write can be made while the time is not known
	Elsewhere                // the item is a retired shard: its heir stands for it
)

// Stage is a bucket at a time in the course of one write. Requests are applied to it
// one after the other. A Stage belongs to one goroutine.
type Stage struct {
	base    *schema.Bucket
	next    *schema.Bucket // state that an exact write leaves, but for the numbers of staged limits
	now     int64
	options Options
	staged  []staged // of the limits that are not dormant
	results []result
	exact   bool // the write has to be exact
	takes   bool // it has a take or a cost
	marks   bool // it says that newer limits wait for leases
	books   bool
	denies  bool        // it has a request that is denied
	folded  bool        // requests were applied under the limits before
	gone    []usage     // consumption of limits that the bucket is under no more
	over    int64       // millitokens that a shard, or an item with leases, was given and has no room for
	raise   uint64      // generation that the write brings
	lease   *LeaseWrite // the last one; nil = none
}

// staged is one limit of a stage.
type staged struct {
	*schema.Balance
	index  int // among the balances of the stage's next
	meter  meter
	seen   number // as the base has it
	number        // as all that was applied leaves it
	bucket tokenbucket.Bucket
	usage  int64
	form   form
}

// result is the reported outcome of a spend.
type result struct {
	spend  *Spend
	staged int
	number              // that was reported
	leaves schema.Units // v as a commuting write leaves it, with no refund cut to the room; of an exact one the number
}

// NewStage returns the bucket of a state at now, or at the state's time where that is
// later.
func NewStage(base *schema.Bucket, now int64, o Options) *Stage {
	s := &Stage{base: base, next: base, now: max(now, base.Time()), options: o, exact: !base.Exists()} // rule: no plan is before the state
	s.restage()
	return s
}

// restage makes the staged limits those of s.next. The consumption that a lease write counts stays.
func (s *Stage) restage() {
	before := s.staged
	s.staged = make([]staged, 0, len(s.next.Balances))
	for i := range s.next.Balances {
		b := &s.next.Balances[i]
		if b.Dormant {
			continue
		}
		st := staged{Balance: b, index: i, meter: newMeter(b, s.next.Line, s.now), seen: number{b.FullAt, b.Carried}}
		st.number = st.meter.fill(st.seen)
		st.bucket = st.meter.bucket(st.number)
		if k := slices.IndexFunc(before, func(was staged) bool { return was.Limit.Name == b.Limit.Name }); k >= 0 {
			st.usage = before[k].usage
		}
		s.staged = append(s.staged, st)
	}
}

// Now is the time of the stage, Unix ms.
func (s *Stage) Now() int64 { return s.now }

// Exact reports whether the write that was applied so far has to be an exact one.
func (s *Stage) Exact() bool { return s.exact }

// Marks reports whether the write says that newer limits wait for leases, and no write did before.
func (s *Stage) Marks() bool { return s.marks }

// find returns the index of a limit among the staged, or -1.
func (s *Stage) find(limit string) int {
	for i := range s.staged {
		if s.staged[i].Limit.Name == limit {
			return i
		}
	}
	return -1
}

// Weigh compares a request with the stage and fills in its results. Charges and refunds are
// in them, and takes if it is admitted.
func (s *Stage) Weigh(r *Request) Verdict {
	writes := s.weigh(r)
	switch {
	case s.base.Shard.Retired: // rule: a retired shard decides nothing
		return Elsewhere
	case !writes && r.Admitted:
		return Passed
	case !writes:
		return Denied
	case !s.base.Exists() && s.options.Doubtful: // rule: no item is created at a doubtful time
		return Waits
	case s.exact || !s.commutes(r):
		return Exact
	}
	return Commutes
}

// weigh fills in the results of a request, as if it were applied. It reports whether the
// item has to be written for it.
func (s *Stage) weigh(r *Request) (writes bool) {
	r.Admitted, r.Under = true, s.next.Limits
	for i := range r.Spends {
		sp := &r.Spends[i]
		k := s.find(sp.Limit)
		sp.Exceeded, sp.Held, sp.Found, sp.Back, sp.Extra, sp.Left = false, k >= 0, 0, 0, 0, tokenbucket.Bucket{}
		if !sp.Held {
			continue
		}
		st := &s.staged[k]
		found := st.bucket
		if sp.Give > 0 {
			found = st.meter.bucket(st.meter.back(st.number, sp.Give, sp.Above))
		}
		sp.Found = found.Tokens
		if sp.Ask > 0 {
			sp.Take = min(sp.Ask, max(sp.Found, 0))
			sp.Need = sp.Take
		}
		if sp.Need > 0 && sp.Found < sp.Need {
			sp.Exceeded, r.Admitted = true, false
		}
	}
	for i := range r.Spends {
		sp := &r.Spends[i]
		if !sp.Held {
			continue
		}
		writes = writes || sp.Give > 0 || sp.Cost > 0 || sp.Usage != 0 || r.Admitted && sp.Take > 0
		st := &s.staged[s.find(sp.Limit)]
		st.spend(sp, r.Admitted)
	}
	return writes
}

// spend carries out a spend and fills in its results. It returns the number that is left, and
// the millitokens consumed.
func (st *staged) spend(sp *Spend, admitted bool) (number, int64) {
	n, usage := st.meter.back(st.number, sp.Give, sp.Above), sp.Usage
	undone := n
	if admitted {
		sp.Extra = min(n.extra(), sp.Take)
		n, usage = st.meter.take(n, sp.Take), usage+sp.Take
	}
	n = st.cost(n, sp)
	sp.Left = st.left(n)
	sp.Back = st.meter.bucket(st.cost(undone, sp)).Tokens - sp.Left.Tokens
	return n, usage
}

// cost subtracts the cost of a spend.
func (st *staged) cost(n number, sp *Spend) number {
	if sp.Cost == 0 {
		return n
	}
	floor := st.Floor
	if sp.Forced {
		floor = -tokenbucket.MaxAmount
	}
	return st.meter.take(n, st.meter.charged(n, sp.Cost, floor))
}

// left returns the balance of a limit for answers.
func (st *staged) left(n number) tokenbucket.Bucket {
	b := st.meter.bucket(n)
	b.Remainder /= schema.Parts
	return b
}

// Apply adds to the write the request that was weighed last, for which Weigh said Commutes or
// Exact.
func (s *Stage) Apply(r *Request) {
	if !s.exact && !s.commutes(r) {
		s.exact = true
	}
	s.results = slices.Grow(s.results, len(r.Spends))
	for i := range r.Spends {
		sp := &r.Spends[i]
		if !sp.Held {
			continue
		}
		k := s.find(sp.Limit)
		st := &s.staged[k]
		if !s.exact {
			st.form, _ = s.join(st, sp, r.Admitted)
		}
		if s.next.Shard.Sharded() || s.next.Leased() {
			s.over += st.meter.excess(st.number, sp.Give)
		}
		n, usage := st.spend(sp, r.Admitted)
		st.number, st.usage = n, st.usage+usage
		st.bucket = st.meter.bucket(n)
		leaves := n.v
		if !s.exact {
			leaves = st.form.leaves(st.seen.v)
		}
		s.results = append(s.results, result{spend: sp, staged: k, number: n, leaves: leaves})
		s.takes = s.takes || sp.Cost > 0 || r.Admitted && sp.Take > 0
	}
	s.books, s.denies = s.books || r.Books(), s.denies || !r.Admitted
}
