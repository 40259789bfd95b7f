package limiter

import (
	"time"

	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// Decision is the answer to a request. [Limiter.Decide] fills it in and reuses its memory. So a
// caller with one Decision a goroutine causes no allocation in steady state. Slices are valid until
// the next use.
type Decision struct {
	Admitted bool
	Reason   Reason // why it was denied; ReasonNone when admitted

	// RetryAfter is the time until the same request would first pass without other takes from its
	// buckets. It is 0 when admitted, and when Reason is not ReasonExhausted: then waiting does not
	// help, or the time is unknown.
	RetryAfter time.Duration

	// Statuses has one entry for each limit that the request asks of a bucket, in the order of
	// Request.Takes. The entity comes before its ancestors, and the limits of a bucket in the order
	// in which the request first names them. Unlimited limits have none.
	Statuses []LimitStatus

	// MissingTake and MissingLimit name the take (its index) and the limit that is configured
	// nowhere; MissingLimit is "" when there is none. Reason is ReasonNotConfigured when the take
	// consumes. A charge or a refund of such a limit is not applied, and denies no request.
	MissingTake  int
	MissingLimit string

	// Disabled names the subject that denied the request, of ReasonDisabled.
	Disabled Disabled

	// Late reports that the store is slow: its answer did not come within the budget. This process
	// then decided by the limits and balances that it last saw. Tokens that it admitted are taken
	// later, see Op.Late. Statuses are estimates. Policy is Unset.
	Late bool

	// Policy is Unset for a decision of the store, and for a late one. Otherwise the store is
	// unavailable and this policy decided; Unavailable is the store's error.
	Policy      Policy
	Unavailable error

	// Kept reports that charges and refunds are queued, and are applied when the store answers
	// again. A limiter queues none, see reservation.Ledger.
	Kept bool

	scratch scratch // working memory of Decide
}

// Reason is the cause of a denial.
type Reason uint8

// The reasons.
const (
	ReasonNone            Reason = iota
	ReasonExhausted              // a limit has too few tokens; waiting helps
	ReasonExceedsCapacity        // the request is for more than a limit's capacity: it can never pass
	ReasonNotConfigured          // a limit that the request consumes is configured nowhere
	ReasonHierarchy              // the chain of ancestors is longer than MaxLevels
	ReasonUnavailable            // the store is unavailable and the policy is to deny
	ReasonDisabled               // an operator disabled the entity, an ancestor, the resource or the namespace
)

// String returns the reason as answers and metrics write it.
func (r Reason) String() string {
	switch r {
	case ReasonNone:
		return "none"
	case ReasonExhausted:
		return "limit_exhausted"
	case ReasonExceedsCapacity:
		return "exceeds_capacity"
	case ReasonNotConfigured:
		return "limit_not_configured"
	case ReasonHierarchy:
		return "hierarchy_too_deep"
	case ReasonUnavailable:
		return "store_unavailable"
	case ReasonDisabled:
		return "disabled"
	default:
		return "unknown"
	}
}

// LimitStatus is the state of one limit of one bucket after a decision on a request. The tokens of
// an admitted request are taken, those of a denied one are not.
type LimitStatus struct {
	Take     int    // index in Request.Takes; two takes of one bucket have a status each
	Level    int    // 0 for the entity itself, 1 for its parent, ...
	Entity   string // of this level
	Resource string
	Limit    *Limit // as the bucket is under it; shared, not to be changed
	Source   Source // the level of the limit
	Plan     string // of the entity, where the limit is from it; "" for one that a rule names

	Available  int64         // balance in millitokens; below zero is debt
	Requested  int64         // millitokens to take; 0 for a peek, a charge, a refund
	Exceeded   bool          // this limit denied
	Never      bool          // the request is for more than the capacity
	RetryAfter time.Duration // until this limit lets the request pass; 0 unless Exceeded and not Never
	Reset      time.Duration // until the bucket is full without takes
}

// Deficit returns the missing millitokens, 0 when the limit did not deny.
func (s LimitStatus) Deficit() int64 {
	if !s.Exceeded {
		return 0
	}
	return tokenbucket.Need(s.Requested) - s.Available
}

// Tries reports whether a level of the decision has limits that are tried. [Take.Tried] decides by them.
func (d *Decision) Tries() bool { return d.scratch.tries }

// reset empties the decision and keeps its memory. It sets field by field: this is on the hot path,
// and copying the whole would cost more than deciding.
func (d *Decision) reset() {
	d.Admitted, d.Reason, d.RetryAfter = false, ReasonNone, 0
	d.MissingTake, d.MissingLimit = 0, ""
	d.Late, d.Policy, d.Unavailable, d.Kept = false, Unset, nil, false
	d.Statuses = d.Statuses[:0]
	sc := &d.scratch
	sc.offline, sc.late, sc.unread, sc.inFlight, sc.tries, sc.policy, sc.decides = false, false, false, false, false, Unset, Unset
	sc.levels, sc.bases = sc.levels[:0], sc.bases[:0]
	sc.refs, sc.records = sc.refs[:0], sc.records[:0]
	sc.ops, sc.spends = sc.ops[:0], sc.spends[:0]
}
