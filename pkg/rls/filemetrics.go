package rls

import (
	"errors"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// fileMetrics are the metrics of envoyproxy/ratelimit for the domains of its files, with its names for Prometheus. They
// count hits. Labels are the domain and the first two levels of the file, with the values that the file gives; deeper
// levels are summed, as its mapper does. nil counts nothing.
type fileMetrics struct {
	hits     [hitsKinds]*prometheus.CounterVec // domain, key1, key2
	calls    *prometheus.CounterVec            // grpc_method
	failures *prometheus.CounterVec            // err_type
	duration prometheus.Histogram
	labels   [][3]string // of the rules in force
}

// The kinds of hits.
const (
	hitsTotal = iota
	hitsWithin
	hitsNear
	hitsOver
	hitsShadow
	hitsKinds
)

// near is the part of a limit from which hits are near it, in tenths.
const near = 8

func newFileMetrics(r prometheus.Registerer) (*fileMetrics, error) {
	if r == nil {
		return nil, nil //nolint:nilnil // no metrics
	}
	m := &fileMetrics{
		calls:    prometheus.NewCounterVec(prometheus.CounterOpts{Name: "ratelimit_service_total_requests", Help: "Calls."}, []string{"grpc_method"}),                              //nolint:promlinter // the name is that of the other service
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "ratelimit_service_should_rate_limit_error", Help: "Calls that ended in an error."}, []string{"err_type"}), //nolint:promlinter // likewise
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "ratelimit_service_response_time_seconds", Help: "Time of a call.",
			Buckets: []float64{10e-6, 50e-6, 100e-6, 500e-6, 1e-3, 5e-3, 10e-3, 50e-3, 0.1, 1},
		}),
	}
	m.calls.WithLabelValues("ShouldRateLimit")
	m.failures.WithLabelValues("service")
	err := errors.Join(r.Register(m.calls), r.Register(m.failures), r.Register(m.duration))
	for i, of := range [hitsKinds][2]string{
		hitsTotal: {"total_hits", "Hits of a limit."}, hitsWithin: {"within_limit", "Hits of calls within the limit."}, hitsNear: {"near_limit", "Hits above eight tenths of the limit, and not above it."},
		hitsOver: {"over_limit", "Hits above the limit."}, hitsShadow: {"shadow_mode", "Hits above a limit in shadow mode."},
	} {
		m.hits[i] = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "ratelimit_service_rate_limit_" + of[0], Help: of[1]}, []string{"domain", "key1", "key2"})
		err = errors.Join(err, r.Register(m.hits[i]))
	}
	return m, err
}

// use makes the series those of the rules. The series of other rules end.
func (m *fileMetrics) use(rules *descriptor.Rules) [][3]string {
	if m == nil {
		return nil
	}
	labels := make([][3]string, rules.Len())
	for _, d := range rules.Domains() {
		for _, rule := range d.Rules() {
			if of, _ := descriptor.Quote(rule); len(of.Keys) > 0 {
				labels[rule.Index()] = [3]string{d.Name()}
				copy(labels[rule.Index()][1:], of.Keys)
			}
		}
	}
	for _, of := range m.labels {
		if !slices.Contains(labels, of) {
			for _, vec := range m.hits {
				vec.DeleteLabelValues(of[0], of[1], of[2])
			}
		}
	}
	m.labels = labels
	return labels
}

// add counts hits of a rule.
func (m *fileMetrics) add(kind int, of [3]string, hits int64) {
	if hits > 0 {
		m.hits[kind].WithLabelValues(of[0], of[1], of[2]).Add(float64(hits))
	}
}

// count counts the call.
func (m *fileMetrics) count(st *state, c *call) {
	if m == nil || !ofFile(&c.plan) {
		return
	}
	for i := range c.plan.Outcomes {
		o := &c.plan.Outcomes[i]
		if o.Rule == nil || st.fileLabels[o.Rule.Index()][1] == "" {
			continue
		}
		of, hits := st.fileLabels[o.Rule.Index()], int64(min(c.in.HitsOf(i), limiter.MaxTokens)) // #nosec G115 -- it fits
		m.add(hitsTotal, of, hits)
		if shadow := shadowOf(c.shadows, i); o.Rule.Shadow() && shadow != nil {
			m.countLimit(of, &shadow.status, hits, shadow.denied, false)
			if shadow.denied {
				m.add(hitsShadow, of, hits)
			}
			continue
		}
		if s := tightest(c.statuses(o)); s != nil {
			m.countLimit(of, s, hits, c.over(o), o.Mode == limiter.Charge || !c.verdict.denied)
		} else if c.over(o) {
			m.add(hitsOver, of, hits)
		}
	}
}

// countLimit counts the hits of one limit by the part of it that they fill. taken says that the status is after them.
func (m *fileMetrics) countLimit(of [3]string, s *limiter.LimitStatus, hits int64, over, taken bool) {
	limit := s.Limit.Capacity
	before := limit - s.Available/limiter.Milli
	if taken {
		before -= hits
	}
	after := before + hits
	part := func(from, to int64) int64 { return max(0, min(after, to)-max(before, from)) }
	m.add(hitsNear, of, part(limit*near/10, limit))
	if over {
		m.add(hitsOver, of, part(limit, after))
	} else {
		m.add(hitsWithin, of, hits)
	}
}

// call counts a call and its time.
func (m *fileMetrics) call(took time.Duration, err error) {
	if m == nil {
		return
	}
	m.calls.WithLabelValues("ShouldRateLimit").Inc()
	m.duration.Observe(took.Seconds())
	if err != nil {
		m.failures.WithLabelValues("service").Inc()
	}
}
