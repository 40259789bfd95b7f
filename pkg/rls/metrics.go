package rls

import (
	"cmp"
	"fmt"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// metrics counts what the service does. Labels are names of the configuration
// and fixed words, never what a request brings: a descriptor that no rule
// matches has the rule "", and an unknown domain is "", which no configuration
// can name.
type metrics struct {
	decisions    *prometheus.CounterVec // domain, rule, result
	denials      *prometheus.CounterVec // domain, rule, limit, reason
	charges      *prometheus.CounterVec // domain, rule, kind, result
	settlements  *prometheus.CounterVec // domain, rule, result
	reservations *prometheus.CounterVec // result
	late         *prometheus.CounterVec // result
	degraded     *prometheus.CounterVec // policy
	invalid      *prometheus.CounterVec // reason
	errors       *prometheus.CounterVec // kind
	duration     prometheus.Histogram
	inFlight     prometheus.GaugeFunc
	unknown      *ruleMetrics // descriptors of unknown domains
}

func newMetrics(inFlight func() int64) *metrics {
	vec := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	m := &metrics{
		decisions:    vec("ratelimit_decisions_total", "Descriptors decided. withheld: would have passed, but the call was denied. fallback: admitted by a policy, as the store is unavailable.", "domain", "rule", "result"),
		denials:      vec("ratelimit_denials_total", "Limits that denied a descriptor.", "domain", "rule", "limit", "reason"),
		charges:      vec("ratelimit_charges_total", "Descriptors that charged or refunded. kept: to be booked when the store answers again.", "domain", "rule", "kind", "result"),
		settlements:  vec("ratelimit_settlements_total", "Descriptors that settle a reservation, by what became of it.", "domain", "rule", "result"),
		reservations: vec("ratelimit_reservations_total", "Calls that reserved something: issued an id for it, or why there was none.", "result"),
		late:         vec("ratelimit_late_decisions_total", "Calls decided by the limits and balances last seen, as the store is slow. What they were allowed is taken later.", "result"),
		degraded:     vec("ratelimit_degraded_total", "Calls answered by a policy, as the store is unavailable or the call could not be decided.", "policy"),
		invalid:      vec("ratelimit_invalid_requests_total", "Calls refused because the gateway's configuration is wrong, or /json does not allow them.", "reason"),
		errors:       vec("ratelimit_errors_total", "Calls that went wrong; none ends in an error.", "kind"),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "ratelimit_request_duration_seconds",
			Help:    "Time from the decoding of a call to its encoded answer.",
			Buckets: []float64{10e-6, 25e-6, 50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 15e-3, 20e-3, 50e-3, 100e-3},
		}),
		inFlight: prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "ratelimit_requests_in_flight", Help: "Calls in hand now.",
		}, func() float64 { return float64(inFlight()) }),
	}
	m.unknown = &ruleMetrics{of: m}
	return m
}

func (m *metrics) register(r prometheus.Registerer) error {
	if r == nil {
		return nil
	}
	for _, c := range []prometheus.Collector{m.decisions, m.denials, m.charges, m.settlements, m.reservations, m.late, m.degraded, m.invalid, m.errors, m.duration, m.inFlight} {
		if err := r.Register(c); err != nil {
			return fmt.Errorf("rls: metrics: %w", err)
		}
	}
	return nil
}

// Results of a descriptor.
const (
	resultAllowed = iota
	resultFallback
	resultDenied
	resultWithheld
	resultUnlimited
	resultUnmatched
	resultShadowAllowed
	resultShadowDenied
	results // their number
)

// ruleMetrics are the series of one rule, kept at hand once they exist.
type ruleMetrics struct {
	of           *metrics
	domain, rule string
	results      [results]atomic.Pointer[prometheus.Counter]
}

// lateDecision counts a call that was decided late.
func (m *metrics) lateDecision(denied bool) {
	result := "allowed"
	if denied {
		result = "denied"
	}
	m.late.WithLabelValues(result).Inc()
}

// forRules returns the series of every rule, by its index, and of the
// descriptors of each domain that no rule matches.
func (m *metrics) forRules(rules *descriptor.Rules) ([]*ruleMetrics, map[*descriptor.Domain]*ruleMetrics) {
	matched, unmatched := make([]*ruleMetrics, rules.Len()), make(map[*descriptor.Domain]*ruleMetrics)
	for _, d := range rules.Domains() {
		unmatched[d] = &ruleMetrics{of: m, domain: d.Name()}
		for _, r := range d.Rules() {
			matched[r.Index()] = &ruleMetrics{of: m, domain: d.Name(), rule: r.Name()}
		}
	}
	return matched, unmatched
}

func (r *ruleMetrics) result(result int) {
	c := r.results[result].Load()
	if c == nil {
		name := [results]string{"allowed", "fallback", "denied", "withheld", "unlimited", "unmatched", "shadow_allowed", "shadow_denied"}[result]
		made := r.of.decisions.WithLabelValues(r.domain, r.rule, name)
		c = &made
		r.results[result].Store(c)
	}
	(*c).Inc()
}

func (r *ruleMetrics) denied(limit, reason string) {
	r.of.denials.WithLabelValues(r.domain, r.rule, limit, reason).Inc()
}

func (r *ruleMetrics) charge(mode limiter.Mode, result string) {
	kind := "charge"
	if mode == limiter.Refund {
		kind = "refund"
	}
	r.of.charges.WithLabelValues(r.domain, r.rule, kind, result).Inc()
}

// of returns the series of an outcome.
func (st *state) of(m *metrics, c *call, o *descriptor.Outcome) *ruleMetrics {
	switch {
	case o.Rule != nil:
		return st.matched[o.Rule.Index()]
	case c.plan.Domain != nil:
		return st.unmatched[c.plan.Domain]
	default:
		return m.unknown
	}
}

// count counts the call's descriptors and shadows.
func (m *metrics) count(st *state, c *call) {
	for i := range c.plan.Outcomes {
		o := &c.plan.Outcomes[i]
		r := st.of(m, c, o)
		switch {
		case o.Kind == descriptor.Settles: // counted below
		case o.Mode != limiter.Consume:
			r.charge(o.Mode, c.booking(o))
			if c.over(o) {
				limit, reason := c.denial(o)
				r.denied(limit, reason)
			}
		case c.over(o):
			r.result(resultDenied)
			limit, reason := c.denial(o)
			r.denied(limit, reason)
		case o.Kind == descriptor.Unmatched:
			r.result(resultUnmatched)
		case o.Kind == descriptor.Unlimited:
			r.result(resultUnlimited)
		case c.verdict.denied:
			r.result(resultWithheld)
		case c.verdict.policy != limiter.Unset:
			r.result(resultFallback)
		default:
			r.result(resultAllowed)
		}
	}
	for i, settled := range c.settlements {
		rule := c.plan.Outcomes[c.plan.Settlements[i].Descriptor].Rule
		m.settlements.WithLabelValues(rule.Domain().Name(), rule.Name(), settled.result).Inc()
	}
	if c.reserved.result != "" {
		m.reservations.WithLabelValues(c.reserved.result).Inc()
	}
	for _, sh := range c.shadows {
		if sh.denied {
			st.matched[sh.rule.Index()].result(resultShadowDenied)
		} else {
			st.matched[sh.rule.Index()].result(resultShadowAllowed)
		}
	}
}

// booking returns what became of the descriptor's charges or refunds.
func (c *call) booking(o *descriptor.Outcome) string {
	if c.missing(o) || o.Why != "" {
		return bookingLost
	}
	return cmp.Or(c.verdict.unbooked, bookingDone)
}

// denial returns the limit that denied the descriptor, "" for none, and why.
func (c *call) denial(o *descriptor.Outcome) (limit, reason string) {
	if s := tightest(c.statuses(o)); s != nil && s.Exceeded {
		if s.Never {
			return s.Limit.Name, limiter.ReasonExceedsCapacity.String()
		}
		return s.Limit.Name, limiter.ReasonExhausted.String()
	}
	switch {
	case o.Kind == descriptor.Denied:
		return "", o.Why
	case o.Kind == descriptor.Unmatched:
		return "", reasonUnmatched
	case c.missing(o):
		return c.decision.MissingLimit, c.verdict.reason
	default:
		return "", c.verdict.reason
	}
}
