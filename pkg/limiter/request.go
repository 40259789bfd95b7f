package limiter

import (
	"fmt"

	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// Request is what one call asks for: takes that are decided all or nothing. A
// request is only read, and may be used for many decisions, also at the same time.
type Request struct {
	Namespace     string // "" = DefaultNamespace
	Takes         []Take // decided together; two takes of the same bucket count as one
	OnUnavailable Policy // what to answer when the store does not; Unset = as stored or configured
	LocalShare    int64  // for Local: thousandths of each limit, 1 to 1000; 0 = as configured

	// Whole has every bucket asked, also when another one is known to deny: the decision has
	// the status of each limit.
	Whole bool

	// Snapshot holds the configured limits to decide by; nil = those in force. See [Limiter.Use].
	Snapshot *Snapshot
}

// Take is one entity's use of one resource.
type Take struct {
	Entity   string   // any bytes
	Resource string   // any bytes
	Parents  []string // ancestors named by the request, nearest first; they win over stored ones
	Limits   *Limits  // the entity's own limits for this take; nil = resolve. Ancestors always resolve theirs
	// LimitsOf names what Limits belong to, such as a plan: their buckets are told
	// apart by it, and so outlive a change of the limits. Takes that share it, an
	// entity and a resource must have the same Limits. "" = by the limits themselves.
	LimitsOf string
	Label    string        // buckets of its own, apart from those of other labels; "" = the ordinary ones
	Shadow   bool          // limits are tried: buckets of its own, which add nothing to usage
	Consume  []Consumption // what to take, by limit; a name given twice adds up
	Mode     Mode
	Lease    LeasePolicy // of all buckets of the chain; of takes of one bucket what all allow
}

// Consumption is an amount of one limit.
type Consumption struct {
	Limit  string
	Amount int64 // millitokens, 0 to tokenbucket.MaxAmount
}

// Mode says what a take does with its amounts.
type Mode uint8

// The modes of a take.
const (
	// Consume takes the amounts if all of them are there. An amount of 0 is a look:
	// it asks for one whole token and takes none.
	Consume Mode = iota
	// Charge books what was already used, into debt if need be. It is applied
	// whatever the outcome of the other takes, and denies nobody.
	Charge
	// Refund gives back, up to the capacity. It is applied like a charge. What one
	// request refunds and charges to the same limit of a bucket is netted first.
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

func (t *Take) consumes(limit string) bool {
	for i := range t.Consume {
		if t.Consume[i].Limit == limit {
			return true
		}
	}
	return false
}
