package rls

import (
	"cmp"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/reservation"
)

// Service is the Rate Limit Service. It is safe for concurrent use. Create it
// with [New], give it rules with [Service.Reload], and serve it with
// [Service.Register] or [Service.JSONHandler].
type Service struct {
	decider  Decider
	settler  Settler
	used     estimator
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
	log      eventLog
	denials  denialLog
	fellBack func() // called when a policy decided
	observer observer
	shadows  shadows
	mirror   func(Mirrored)
	counters *Counters
}

// New returns a service without rules, for which every domain is unknown. It fails when cfg has no
// Decider, or its Registerer already has metrics of these names.
func New(cfg Config) (*Service, error) {
	if cfg.Decider == nil {
		return nil, errors.New("rls: a service needs a Decider")
	}
	cfg.MaxInFlight = cmp.Or(max(cfg.MaxInFlight, 0), DefaultMaxInFlight)
	cfg.MaxBytes = cmp.Or(max(cfg.MaxBytes, 0), DefaultMaxBytes)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.OnFallback == nil {
		cfg.OnFallback = func() {}
	}
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	s := &Service{
		decider: cfg.Decider,
		settler: cfg.Settler,
		used:    estimator{reservation.NewEstimates(0)},
		asked:   descriptor.NewAsked(),
		now:     cfg.Now,
		max:     int64(cfg.MaxInFlight), maxBytes: cfg.MaxBytes,
		calls:    sync.Pool{New: func() any { return new(call) }},
		counters: cfg.Counters,
		mirror:   cfg.Mirror,
		denials:  denialLog{logger: cfg.Logger},
		fellBack: cfg.OnFallback,
		observer: cfg.Observe,
	}
	s.metrics = newMetrics(cfg.Now, s.inFlight.Load)
	s.log = eventLog{limiter.NewSampledLog(cfg.Logger), cfg.Now, s.metrics.errors}
	s.shadows = shadows{s.decider, s.observer, s.log}
	err := s.metrics.register(cfg.Registerer)
	if err == nil {
		s.metrics.files, err = newFileMetrics(cfg.FileRegisterer, cfg.FileStats)
	}
	if err != nil {
		return nil, err
	}
	s.Reload(nil, &cfg.Options)
	return s, nil
}

// Estimates returns the estimator of reservations without a number.
func (s *Service) Estimates() descriptor.Estimator { return s.used }

// Reload replaces rules and options together: every call that starts from now on sees both, or neither. Rules that are
// nil are none; options that are nil stay.
func (s *Service) Reload(rules *descriptor.Rules, options *Options) {
	s.reload.Lock()
	defer s.reload.Unlock()
	if options == nil {
		options = &s.state.Load().options
	}
	s.state.Store(&state{
		rules: rules, options: *options, series: s.metrics.rules.replace(rules),
		asked: s.asked.Of(rules), log: newUnmatchedLog(s.denials.logger), files: s.metrics.files.use(rules),
	})
	s.metrics.limits.use(rules, options.Limitador)
}

// Decided returns the number of descriptors decided since the service was made, by the results of
// the metric ratelimit_decisions_total. The numbers never decrease.
func (s *Service) Decided() map[string]int64 { return s.metrics.rules.decided() }

// DeniedBy returns the number of descriptors denied since the service was made, by the reasons of
// the metric ratelimit_denials_total. A reason without a denial is left out.
func (s *Service) DeniedBy() map[string]int64 { return s.metrics.rules.deniedBy() }
