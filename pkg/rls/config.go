package rls

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/reservation"
)

// DefaultMaxInFlight is the most calls decided at the same time, unless Config says otherwise.
const DefaultMaxInFlight = 65536

// DefaultMaxBytes is the most bytes of calls in hand at the same time, unless Config says otherwise.
const DefaultMaxBytes = 64 << 20

// Decider decides requests; *limiter.Limiter is one. It must be safe for concurrent use. An error
// means that there is no decision, see [limiter.Limiter.Decide].
type Decider interface {
	Decide(ctx context.Context, now time.Time, req *limiter.Request, d *limiter.Decision) error
}

// Config configures a [Service]. Only Decider is required.
type Config struct {
	Decider Decider
	Options
	// MaxInFlight bounds the calls in progress. OnUnavailable answers further calls. 0 =
	// DefaultMaxInFlight.
	MaxInFlight int
	// MaxBytes bounds the bytes of the messages in progress. Beyond it, a message above 4 KiB is
	// denied. 0 = DefaultMaxBytes.
	MaxBytes int64
	// Settler settles reservations; nil = there are no reservations.
	Settler Settler
	// Now is the clock of decisions; nil = time.Now.
	Now func() time.Time
	// Registerer takes the metrics; nil = they are counted but not exposed.
	Registerer prometheus.Registerer
	// FileRegisterer takes the metrics of envoyproxy/ratelimit for the domains of its files; nil = there are none.
	FileRegisterer prometheus.Registerer
	// FileStats counts the same by the names of StatsD; nil = nothing does.
	FileStats *FileStats
	// Counters remember the counters of limitador files that calls use; nil = nothing does.
	Counters *Counters
	// OnFallback is called for each call that a policy decided because the Decider's store gave no
	// decision. nil = no call.
	OnFallback func()
	// Observe gets each limit of a bucket that an admitted call took from, and each limit that
	// denied a call. It gets the time of the call, which waits for it, so it must be fast. nil = no
	// call.
	Observe func(now time.Time, o Observation)
	// Mirror gets each call and its answer. It must be fast, and may keep both. nil = no call.
	Mirror func(m Mirrored)
	// Logger gets errors, at most one a second for each kind of event; nil = no log.
	Logger *slog.Logger
}

// Options are the settings that a reload can change, see [Service.Reload]. The zero value sends no
// headers, admits calls of unknown domains, and admits calls that cannot be decided.
type Options struct {
	Headers Headers
	// UnmatchedDeny denies calls of domains that are not in the rules. For descriptors that no rule
	// of a domain matches, the domain has its own setting.
	UnmatchedDeny bool
	// Files are the answers for the domains of envoyproxy/ratelimit files.
	Files FileOptions
	// Limitador has the metrics of limitador.
	Limitador bool
	// Body is the body of denials of domains that are not in the rules. Each domain has its own.
	Body descriptor.Body
	// OnUnavailable answers a call that could not be decided, unless its rules have a policy: Unset
	// and Allow admit it, others deny it. The Decider has its own policy for an unavailable store.
	OnUnavailable limiter.Policy
	// Snapshot has the limits that belong to the rules. nil = the limits in force in the Decider,
	// which may not fit the rules during a reload.
	Snapshot *limiter.Snapshot
	// NoRules refuses calls as unavailable, as the rules are still to come.
	NoRules bool
	// Keyring seals the ids of reservations, which can be settled for Lifetime. nil = no ids are
	// made.
	Keyring  *reservation.Keyring
	Lifetime time.Duration
	// JSON says which effects calls over JSONHandler may have.
	JSON JSONOptions
	// Denials says which denials are logged.
	Denials DenialLog
}

// Settler settles reservations, see [reservation.Ledger.Settle]. It must be safe for
// concurrent use.
type Settler interface {
	Settle(ctx context.Context, now time.Time, s reservation.Settlement) (reservation.Outcome, error)
}

// Headers are the response headers of an answer; docs/headers.md has the exact meaning of each.
// Limits that a call does not consume have none.
type Headers struct {
	RetryAfter bool          // retry-after, on denials that end with time
	XRateLimit bool          // x-ratelimit-limit, -remaining and -reset, of the tightest limit
	OpenAI     OpenAIHeaders // x-ratelimit-limit-requests and so on, of two limits side by side
	IETF       bool          // ratelimit-policy and ratelimit, with an item for each name of a limit
}

// FileOptions are the settings of that service, for answers to its files.
type FileOptions struct {
	// OwnHeaders sends Options.Headers, in place of Headers.
	OwnHeaders bool
	// Headers are those of the limit with the fewest requests left; the zero value sends none.
	Headers FileHeaders
	// Metadata is the dynamic metadata of answers.
	Metadata FileMetadata
	// Shadow admits all calls. Their statuses have the codes of enforced limits.
	Shadow bool
	// Quota makes each descriptor one of quota_mode; one without a limit is not over it.
	Quota bool
	// Near is the part of a limit from which hits count as near it, in thousandths, 1 to 1000; 0 = 800.
	Near int64
}

// FileMetadata says which dynamic metadata answers have.
type FileMetadata uint8

// The settings of FileMetadata.
const (
	OwnMetadata   FileMetadata = iota // as other domains
	NoMetadata                        // none
	RulesMetadata                     // domain, entries, and the metadata of the rules whose descriptors are admitted
)

// FileHeaders are the names of headers.
type FileHeaders struct {
	Limit     string // requests of a unit
	Remaining string // requests left
	Reset     string // seconds until the limit is new
}

// SetDefaults gives the names of that service to those that are empty.
func (h *FileHeaders) SetDefaults() {
	h.Limit = cmp.Or(h.Limit, "RateLimit-Limit")
	h.Remaining = cmp.Or(h.Remaining, "RateLimit-Remaining")
	h.Reset = cmp.Or(h.Reset, "RateLimit-Reset")
}

// OpenAIHeaders are the names of the limits for OpenAI's headers; "" = none.
type OpenAIHeaders struct {
	Requests string // x-ratelimit-limit-requests, -remaining-requests and -reset-requests
	Tokens   string // x-ratelimit-limit-tokens, -remaining-tokens and -reset-tokens
}

// JSONOptions are the effects that calls over [Service.JSONHandler] may have beside takes,
// reservations and settlements. Over gRPC all effects are allowed.
type JSONOptions struct {
	Refunds bool // refund tokens, by is_negative_hits
	Charges bool // charge tokens, into debt, by rules with overdraw
}

// DenialLog says how denials are logged. The zero value logs none.
type DenialLog struct {
	// PerSecond is the most lines a second, 0 or above. The next line has the number of denials
	// without a line.
	PerSecond int
	// WholeEntity logs whole names of entities. Without it, a name of more than 8 bytes after the
	// kind of the entity is cut, as it may be a credential. It then ends in a part of the SHA-256
	// of the entity.
	WholeEntity bool
}

// MirroredHeader is metadata of calls that a mirror makes. The service does not mirror them again: the other service can
// be this one, or have it as its mirror.
const MirroredHeader = "ratelimit-mirrored"

// Mirrored is a call of ShouldRateLimit, and its answer.
type Mirrored struct {
	Domain string // of the configuration; "" = it has none of the call's name
	Wire   string // the RateLimitRequest
	Answer []byte // the RateLimitResponse
}

// Observation is the effect of a decision on one limit of a bucket. Its names are those of the
// bucket, and may come from the request. The observer must not keep them, as they can be parts of a
// larger text.
type Observation struct {
	Namespace, Entity, Resource, Limit string

	Amount int64 // millitokens that were taken or charged; of a denial, millitokens asked for
	Denied bool  // this limit denied
	Shadow bool  // this limit would have denied, and is of a rule in shadow mode or tried
	// Missing says that no level defines the limit, which is why it denied.
	Missing bool
}
