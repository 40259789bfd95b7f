package limiter

import (
	"fmt"

	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// Request is the request of one call: takes that are decided all or nothing. It is only read, and
// may be used for many decisions, also at the same time.
type Request struct {
	Namespace     string // "" = DefaultNamespace
	Takes         []Take // decided together; two takes of the same bucket count as one
	OnUnavailable Policy // the answer if the store does not answer; Unset = as stored or configured
	LocalShare    int64  // for Local: thousandths of each limit, 1 to 1000; 0 = as configured

	// Whole makes the decision ask every bucket, also when another one is known to deny. The
	// decision then has the status of each limit.
	Whole bool

	// Snapshot is the configured limits to decide by; nil = those in force. See [Limiter.Use].
	Snapshot *Snapshot
}

// Take is one entity's use of one resource.
type Take struct {
	Entity   string   // any bytes
	Resource string   // any bytes
	Parents  []string // ancestors named by the request, nearest first; they win over stored ones
	Limits   *Limits  // of a bucket of the take's own; nil = none. Ancestors have none
	// LimitsOf names the owner of Limits, such as a plan. It distinguishes their buckets, which so
	// outlive a change of the limits. Takes with the same LimitsOf, entity and resource must have
	// the same Limits. "" = by the limits themselves.
	LimitsOf string
	LimitsBy Origin        // of Limits: which stored limits replace some of them
	Given    string        // name of the one of Limits that the call itself has: none replaces it; "" = none
	Label    string        // buckets of its own, apart from those of other labels; "" = the ordinary ones
	Shadow   bool          // a rule is tried: buckets of its own, which add nothing to usage
	Tried    bool          // stored and configured limits are tried: those of names that end in ".shadow", in place of the others
	Consume  []Consumption // amounts by limit; those of a name given twice are added
	Mode     Mode
	Lease    LeasePolicy // of all buckets of the chain; takes of one bucket combine theirs
}

// Origin says where a take's own limits come from.
type Origin uint8

// The origins.
const (
	ByRule Origin = iota // those of the entity for the resource come before them
	ByPlan               // the same, and those of the entity
)

// Consumption is an amount of one limit.
type Consumption struct {
	Limit  string
	Amount int64 // millitokens, 0 to tokenbucket.MaxAmount
}

// Mode is the kind of a take.
type Mode uint8

// The modes of a take.
const (
	// Consume takes the amounts if the balances have all of them. An amount of 0 is a peek: it
	// needs one whole token and takes none.
	Consume Mode = iota
	// Charge takes tokens that were already used, into debt if need be. It is applied in any case,
	// and denies no request.
	Charge
	// Refund adds tokens, up to the capacity. It is applied like a charge. A refund and a charge of
	// one request to the same limit of a bucket are netted first.
	Refund
)

// validate refuses amounts outside of the arithmetic's range.
func (r *Request) validate() error {
	for i := range r.Takes {
		for _, c := range r.Takes[i].Consume {
			if c.Amount < 0 || c.Amount > tokenbucket.MaxAmount {
				return fmt.Errorf("%w: take %d asks for %d millitokens of %s; it must be 0 to %d",
					ErrInvalid, i, c.Amount, c.Limit, int64(tokenbucket.MaxAmount))
			}
		}
		if r.Takes[i].Lease != (LeasePolicy{}) {
			if err := r.Takes[i].Lease.Check(); err != nil {
				return fmt.Errorf("take %d: %w", i, err)
			}
		}
		if len(r.Takes[i].Parents) >= MaxLevels {
			return fmt.Errorf("%w: take %d names %d ancestors; at most %d are allowed", ErrInvalid, i, len(r.Takes[i].Parents), MaxLevels-1)
		}
	}
	return nil
}

func (r *Request) namespace() string {
	if r.Namespace == "" {
		return DefaultNamespace
	}
	return r.Namespace
}

// TriedIn makes to the same request, decided by the limits that are tried. It reuses the memory of its takes.
func (r *Request) TriedIn(to *Request) {
	takes := to.Takes[:0]
	for i := range r.Takes {
		takes = append(takes, r.Takes[i])
		takes[i].Tried = true
	}
	*to = *r
	to.Takes = takes
}

// consumed returns the names of the limits that the request's takes consume.
func (r *Request) consumed() map[string]bool {
	names := make(map[string]bool)
	for i := range r.Takes {
		if r.Takes[i].Mode != Consume {
			continue
		}
		for _, c := range r.Takes[i].Consume {
			names[c.Limit] = true
		}
	}
	return names
}

// all reports whether a set has each limit that the take consumes.
func (t *Take) all(m *merged) bool {
	for i := range t.Consume {
		if !m.has(t.Consume[i].Limit) {
			return false
		}
	}
	return true
}

// amount returns how much of a limit the take asks for.
func (t *Take) amount(limit string) (sum int64) {
	for i := range t.Consume {
		if t.Consume[i].Limit == limit {
			sum = saturatingAdd(sum, t.Consume[i].Amount)
		}
	}
	return sum
}

func (t *Take) consumes(limit string) bool {
	for i := range t.Consume {
		if t.Consume[i].Limit == limit {
			return true
		}
	}
	return false
}
