package rls

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// limitMetrics are the metrics of limitador, with its names, for the domains of its files. Without such a file there are
// no series.
type limitMetrics struct {
	calls       *prometheus.CounterVec // limitador_namespace
	hits        *prometheus.CounterVec // limitador_namespace
	limited     *prometheus.CounterVec // limitador_namespace, limitador_limit_name
	up          *prometheus.GaugeVec
	partitioned *prometheus.GaugeVec
	latency     *prometheus.HistogramVec
	domains     map[string]bool // that are in force
}

func newLimitMetrics() *limitMetrics {
	const namespace = "limitador_namespace"
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	return &limitMetrics{
		calls:       counter("authorized_calls", "Calls that limits of a limitador file admitted.", namespace),
		hits:        counter("authorized_hits", "Hits of those calls, and hits that were reported.", namespace),
		limited:     counter("limited_calls", "Calls that such a limit denied.", namespace, "limitador_limit_name"),
		up:          prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "limitador_up", Help: "1 while a limitador file is in force."}, nil),
		partitioned: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "datastore_partitioned", Help: "1 if a policy decided the last call to such limits, as the store did not answer; else 0."}, nil),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "datastore_latency", Help: "Seconds of a call to such limits.", Buckets: []float64{10e-6, 50e-6, 100e-6, 500e-6, 1e-3, 5e-3, 10e-3, 50e-3, 0.1, 1},
		}, nil),
	}
}

func (m *limitMetrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.calls, m.hits, m.limited, m.up, m.partitioned, m.latency}
}

// use makes the series those of the rules. The series of other domains end.
func (m *limitMetrics) use(rules *descriptor.Rules, on bool) {
	domains := map[string]bool{}
	for _, d := range rules.Domains() {
		if d.OfLimits() {
			domains[d.Name()] = true
			m.calls.WithLabelValues(d.Name())
			m.hits.WithLabelValues(d.Name())
		}
	}
	for name := range m.domains {
		if !domains[name] {
			m.calls.DeleteLabelValues(name)
			m.hits.DeleteLabelValues(name)
			m.limited.DeletePartialMatch(prometheus.Labels{"limitador_namespace": name})
		}
	}
	m.domains = domains
	if !on {
		m.up.Reset()
		m.partitioned.Reset()
		return
	}
	m.up.WithLabelValues().Set(1)
	m.partitioned.WithLabelValues()
}

// count counts a call.
func (m *limitMetrics) count(c *call) {
	if !ofLimits(&c.plan) {
		return
	}
	domain, partitioned := c.plan.Domain.Name(), 0.0
	if c.verdict.policy != limiter.Unset {
		partitioned = 1
	}
	m.partitioned.WithLabelValues().Set(partitioned)
	if c.verdict.denied {
		name := ""
		if rule := deniedBy(c); rule != nil {
			name = rule.Name()
		}
		m.limited.WithLabelValues(domain, name).Inc()
		return
	}
	if c.in.Use != descriptor.UseReport {
		m.calls.WithLabelValues(domain).Inc()
	}
	switch commits := c.method != nil && c.method.commits; {
	case commits && (c.released || len(c.plan.Applied) > 0):
		m.hits.WithLabelValues(domain).Add(float64(c.in.Hits))
	case !commits && (c.in.Use == descriptor.UseReport || c.in.Use == descriptor.UseTake):
		m.hits.WithLabelValues(domain).Add(float64(max(1, c.in.Hits)))
	}
}

// observe notes the time of a call since its start.
func (m *limitMetrics) observe(c *call, start time.Time, now func() time.Time) {
	if ofLimits(&c.plan) {
		m.latency.WithLabelValues().Observe(now().Sub(start).Seconds())
	}
}

// deniedBy returns the rule of the limit that denied the call, or nil.
func deniedBy(c *call) *descriptor.Rule {
	if s := c.denier(); s != nil {
		return c.ruleOf(s.Take)
	}
	return c.firstOver()
}
