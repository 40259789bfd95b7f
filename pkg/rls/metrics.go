package rls

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// metrics are the metrics of the service. Labels are names of the configuration and fixed words,
// and never text of a request. A descriptor that no rule matches has the rule "". An unknown domain
// is "", a name that no configuration has. Series of configured rules exist from the start, and end
// with their rules.
type metrics struct {
	rules        ruleCollector
	reservations *prometheus.CounterVec // result
	commits      *prometheus.CounterVec // result
	late         *prometheus.CounterVec // result
	degraded     *prometheus.CounterVec // policy
	invalid      *prometheus.CounterVec // reason
	errors       *prometheus.CounterVec // kind
	duration     prometheus.Histogram
	inFlight     prometheus.GaugeFunc
	limits       *limitMetrics
	files        *fileMetrics // nil = there are none
}

func newMetrics(now func() time.Time, inFlight func() int64) *metrics {
	vec := func(name, help, label string, values ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label})
		for _, value := range values { // so that a rate includes the first event
			v.WithLabelValues(value)
		}
		return v
	}
	return &metrics{
		rules:        newRuleCollector(now),
		limits:       newLimitMetrics(),
		reservations: vec("ratelimit_reservations_total", "Calls that reserved tokens: issued, or the reason for no id.", "result", reservationIssued),
		commits:      vec("ratelimit_commits_total", "Commits of Kuadrant with an id, by the result of the settlement.", "result", settledNow),
		late:         vec("ratelimit_late_decisions_total", "Calls decided by the last known state, because the store is slow; their tokens are taken later.", "result", "allowed", "denied"),
		degraded:     vec("ratelimit_degraded_total", "Calls that a fallback policy answered: no store, or no decision.", "policy", limiter.Allow.String(), limiter.Deny.String(), limiter.Local.String()),
		invalid:      vec("ratelimit_invalid_requests_total", "Calls refused: a wrong configuration of the gateway, or not allowed by /json.", "reason", "malformed", errNoDomain.reason, errNoDescriptors.reason, "unknown_unit"),
		errors:       vec("ratelimit_errors_total", "Internal errors; callers still get a decision.", "kind", "other", "invalid", "closed", "overloaded", "panic", reasonTooLarge),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "ratelimit_request_duration_seconds",
			Help:    "Time from the decoding of a call to its encoded answer.",
			Buckets: []float64{10e-6, 25e-6, 50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 15e-3, 20e-3, 50e-3, 100e-3},
		}),
		inFlight: prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "ratelimit_requests_in_flight", Help: "Calls in progress.",
		}, func() float64 { return float64(inFlight()) }),
	}
}

func (m *metrics) register(r prometheus.Registerer) error {
	if r == nil {
		return nil
	}
	for _, c := range append([]prometheus.Collector{&m.rules, m.reservations, m.commits, m.late, m.degraded, m.invalid, m.errors, m.duration, m.inFlight}, m.limits.all()...) {
		if err := r.Register(c); err != nil {
			return fmt.Errorf("rls: metrics: %w", err)
		}
	}
	return nil
}

// lateDecision counts a call that was decided late.
func (m *metrics) lateDecision(denied bool) {
	result := "allowed"
	if denied {
		result = "denied"
	}
	m.late.WithLabelValues(result).Inc()
}
