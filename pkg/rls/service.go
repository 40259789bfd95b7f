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

// smallMessage is the size up to which a message is decided however many bytes are in
// hand, so that large ones cannot keep others out.
const smallMessage = 4 << 10

// Decider decides requests; *limiter.Limiter is one. It must be safe for
// concurrent use. An error says that there is no decision, see [limiter.Limiter.Decide].
type Decider interface {
	Decide(ctx context.Context, now time.Time, req *limiter.Request, d *limiter.Decision) error
}

// Config configures a [Service]. Only Decider is required.
type Config struct {
	Decider Decider
	Options
	// MaxInFlight bounds the calls in hand at once; what comes on top is answered by
	// OnUnavailable. 0 = DefaultMaxInFlight.
	MaxInFlight int
	// MaxBytes bounds the bytes of the messages in hand at once; a message above 4 KiB that
	// comes on top is denied. 0 = DefaultMaxBytes.
	MaxBytes int64
	// Settler settles reservations; nil = none are made, and none are settled.
	Settler Settler
	// Now is the clock of decisions; nil = time.Now.
	Now func() time.Time
	// Registerer takes the metrics; nil = they are counted and shown nowhere.
	Registerer prometheus.Registerer
	// OnFallback is called for each call that a policy decided because the Decider's
	// store gave no decision; nil = nothing is.
	OnFallback func()
	// Observe is told of each limit of a bucket that an admitted call took from, and of each
	// that denied one, at the time of the call. It is called while a call waits; nil =
	// nothing is.
	Observe func(now time.Time, o Observation)
	// Logger says what went wrong, at most once a second for each kind of event;
	// nil = nobody.
	Logger *slog.Logger
}

// Options are what a reload may change, see [Service.Reload]. The zero value
// sends no headers, admits what no domain matches, and admits what cannot be decided.
type Options struct {
	Headers Headers
	// UnmatchedDeny denies calls of domains that the rules do not know. What a known
	// domain does with descriptors that no rule matches is its own setting.
	UnmatchedDeny bool
	// OnUnavailable answers a call that could not be decided, unless its rules say
	// otherwise: Unset and Allow admit it, others deny it. What to answer when the
	// store does not is the Decider's matter.
	OnUnavailable limiter.Policy
	// Snapshot holds the limits that belong to the rules; nil = what the Decider has
	// in force, which during a reload may not fit the rules.
	Snapshot *limiter.Snapshot
	// Keyring seals the ids of reservations, and Lifetime is how long they can be
	// settled; nil = no ids are made.
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
	bytes    atomic.Int64 // of messages in hand
	state    atomic.Pointer[state]
	reload   sync.Mutex // held while state is replaced
	calls    sync.Pool  // of *call
	metrics  *metrics
	log      *sampledlog.Log
	denials  denialLog
	fellBack func() // a policy decided
	observer func(now time.Time, o Observation)
}

// state is what calls see of the configuration: all of one, or all of the next.
type state struct {
	rules   *descriptor.Rules
	options Options
	series  *series
	asked   *descriptor.AskedRules
	log     *unmatchedLog
}

// New returns a service without rules: to it every domain is unknown. It fails
// when cfg has no Decider, or its Registerer already has metrics of these names.
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

// SetRules puts rules in force, in place of the earlier ones, for every call
// that starts from now on; nil = none.
func (s *Service) SetRules(rules *descriptor.Rules) {
	s.reload.Lock()
	defer s.reload.Unlock()
	s.replace(rules, s.state.Load().options)
}

// Reload puts rules and options in force together: no call sees the one without
// the other.
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

// Decided returns the number of descriptors that were decided since the service was made, by
// result as the metric ratelimit_decisions_total has it. No number ever becomes smaller.
func (s *Service) Decided() map[string]int64 { return s.metrics.rules.decided() }

// serve answers a decoded call. Its errors are those of gRPC, and for what the
// gateway's configuration got wrong only.
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
		if !c.problem.forbidden() { // which says nothing of the gateway
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

// tooLarge denies a call that has more than any gateway sends.
func (s *Service) tooLarge(ctx context.Context, text string) *answer {
	s.metrics.errors.WithLabelValues(reasonTooLarge).Inc()
	s.trouble(ctx, eventTooLarge, "", slog.String("error", text))
	c := call{options: s.state.Load().options}
	c.verdict = verdict{denied: true, reason: reasonTooLarge, blanket: true, unbooked: bookingLost}
	c.encode()
	return c.answer()
}

// fallback answers a call that was not looked at, by policy.
func (s *Service) fallback(reason string) *answer {
	c := call{options: s.state.Load().options}
	c.verdict = undecided(c.options.OnUnavailable, reason)
	s.metrics.degraded.WithLabelValues(c.verdict.policy.String()).Inc()
	c.encode()
	return c.answer()
}

// undecided is the verdict of a call that no limiter decided.
func undecided(policy limiter.Policy, reason string) verdict {
	v := verdict{reason: reason, blanket: true, unbooked: bookingLost, policy: limiter.Allow}
	if policy != limiter.Unset && policy != limiter.Allow {
		v.denied, v.policy = true, limiter.Deny
	}
	return v
}
