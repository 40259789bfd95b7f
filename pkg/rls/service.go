package rls

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/status"

	"github.com/ratelimit/ratelimit/internal/sampledlog"
	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/ledger"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/reservation"
)

// DefaultMaxInFlight is the most calls decided at the same time, unless Config says otherwise.
const DefaultMaxInFlight = 65536

// DefaultMaxBytes is the most bytes of calls in hand at the same time, unless Config says otherwise.
const DefaultMaxBytes = 64 << 20

// smallMessage is the size up to which a message is decided at any number of bytes in use. So large
// messages cannot keep small ones out.
const smallMessage = 4 << 10

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
	// OnFallback is called for each call that a policy decided because the Decider's store gave no
	// decision. nil = no call.
	OnFallback func()
	// Observe gets each limit of a bucket that an admitted call took from, and each limit that
	// denied a call. It gets the time of the call, which waits for it, so it must be fast. nil = no
	// call.
	Observe func(now time.Time, o Observation)
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
	// OnUnavailable answers a call that could not be decided, unless its rules have a policy: Unset
	// and Allow admit it, others deny it. The Decider has its own policy for an unavailable store.
	OnUnavailable limiter.Policy
	// Snapshot has the limits that belong to the rules. nil = the limits in force in the Decider,
	// which may not fit the rules during a reload.
	Snapshot *limiter.Snapshot
	// Keyring seals the ids of reservations, which can be settled for Lifetime. nil = no ids are
	// made.
	Keyring  *reservation.Keyring
	Lifetime time.Duration
	// JSON says which effects calls over JSONHandler may have.
	JSON JSONOptions
	// Denials says which denials are logged.
	Denials DenialLog
}

// Settler settles reservations, see [ledger.Ledger.Settle]. It must be safe for
// concurrent use.
type Settler interface {
	Settle(ctx context.Context, now time.Time, s ledger.Settlement) (ledger.Outcome, error)
}

// Service is the Rate Limit Service. It is safe for concurrent use. Create it
// with [New], give it rules with [Service.SetRules], and serve it with
// [Service.Register] or [Service.JSONHandler].
type Service struct {
	decider  Decider
	settler  Settler
	used     *reservation.Estimates
	asked    *descriptor.Asked
	now      func() time.Time
	max      int64
	inFlight atomic.Int64
	maxBytes int64
	bytes    atomic.Int64 // of messages in progress
	state    atomic.Pointer[state]
	reload   sync.Mutex // held while state is replaced
	calls    sync.Pool  // of *call
	metrics  *metrics
	log      *sampledlog.Log
	denials  denialLog
	fellBack func() // called when a policy decided
	observer func(now time.Time, o Observation)
}

// state is the configuration that calls use. A call sees one state as a whole.
type state struct {
	rules   *descriptor.Rules
	options Options
	series  *series
	asked   *descriptor.AskedRules
	log     *unmatchedLog
}

// New returns a service without rules, for which every domain is unknown. It fails when cfg has no
// Decider, or its Registerer already has metrics of these names.
func New(cfg Config) (*Service, error) {
	if cfg.Decider == nil {
		return nil, errors.New("rls: a service needs a Decider")
	}
	if cfg.MaxInFlight <= 0 {
		cfg.MaxInFlight = DefaultMaxInFlight
	}
	if cfg.MaxBytes <= 0 {
		cfg.MaxBytes = DefaultMaxBytes
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.OnFallback == nil {
		cfg.OnFallback = func() {}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Service{
		decider: cfg.Decider,
		settler: cfg.Settler,
		used:    reservation.NewEstimates(0),
		asked:   descriptor.NewAsked(cfg.Now()),
		now:     cfg.Now,
		max:     int64(cfg.MaxInFlight), maxBytes: cfg.MaxBytes,
		calls:    sync.Pool{New: func() any { return new(call) }},
		log:      sampledlog.New(cfg.Logger),
		denials:  denialLog{logger: cfg.Logger},
		fellBack: cfg.OnFallback,
		observer: cfg.Observe,
	}
	s.metrics = newMetrics(cfg.Now, s.inFlight.Load)
	if err := s.metrics.register(cfg.Registerer); err != nil {
		return nil, err
	}
	s.replace(nil, cfg.Options)
	return s, nil
}

// SetRules replaces the rules for every call that starts from now on; nil = none.
func (s *Service) SetRules(rules *descriptor.Rules) {
	s.reload.Lock()
	defer s.reload.Unlock()
	s.replace(rules, s.state.Load().options)
}

// Reload replaces rules and options together: every call sees both or neither.
func (s *Service) Reload(rules *descriptor.Rules, options Options) {
	s.reload.Lock()
	defer s.reload.Unlock()
	s.replace(rules, options)
}

func (s *Service) replace(rules *descriptor.Rules, options Options) {
	s.state.Store(&state{
		rules: rules, options: options, series: s.metrics.rules.replace(rules),
		asked: s.asked.Of(rules), log: newUnmatchedLog(s.denials.logger),
	})
}

// Decided returns the number of descriptors decided since the service was made, by the results of
// the metric ratelimit_decisions_total. The numbers never decrease.
func (s *Service) Decided() map[string]int64 { return s.metrics.rules.decided() }

// serve answers a decoded call. Its errors are those of gRPC, and only for mistakes in the
// gateway's configuration.
func (s *Service) serve(ctx context.Context, now time.Time, c *call) (*answer, error) {
	if c.problem != nil && c.problem.denied {
		return s.tooLarge(ctx, c.problem.text), nil
	}
	st := s.state.Load()
	c.options = st.options
	if c.problem == nil {
		s.decide(ctx, now, c, st)
	}
	if c.problem != nil {
		s.metrics.invalid.WithLabelValues(c.problem.reason).Inc()
		if !c.problem.forbidden() { // which is no mistake in the gateway's configuration
			s.trouble(ctx, eventInvalid, c.problem.reason, slog.String("error", c.problem.text))
		}
		return nil, status.Error(c.problem.code(), c.problem.text)
	}
	c.encode()
	s.metrics.count(st, c)
	s.account(now, st, c)
	s.denials.log(ctx, now, c)
	st.log.warn(ctx, now, c, st.rules)
	return c.answer(), nil
}

// tooLarge denies a call that is larger than that of any gateway.
func (s *Service) tooLarge(ctx context.Context, text string) *answer {
	s.metrics.errors.WithLabelValues(reasonTooLarge).Inc()
	s.trouble(ctx, eventTooLarge, "", slog.String("error", text))
	c := call{options: s.state.Load().options}
	c.verdict = verdict{denied: true, reason: reasonTooLarge, blanket: true, unbooked: bookingLost}
	c.encode()
	return c.answer()
}

// fallback answers a call by policy, without a plan.
func (s *Service) fallback(reason string) *answer {
	c := call{options: s.state.Load().options}
	c.verdict = undecided(c.options.OnUnavailable, reason)
	s.metrics.degraded.WithLabelValues(c.verdict.policy.String()).Inc()
	c.encode()
	return c.answer()
}

// undecided returns the verdict of a call without a decision of the limiter.
func undecided(policy limiter.Policy, reason string) verdict {
	v := verdict{reason: reason, blanket: true, unbooked: bookingLost, policy: limiter.Allow}
	if policy != limiter.Unset && policy != limiter.Allow {
		v.denied, v.policy = true, limiter.Deny
	}
	return v
}
