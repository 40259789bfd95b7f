package rls

import (
	"cmp"
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

	stats *FileStats
}

// fileSeries is where the hits of a rule are counted. The zero value is nowhere.
type fileSeries struct {
	labels [3]string
	stat   *fileStat // nil = nowhere
}

// defaultNear is the part of a limit from which hits are near it, in thousandths.
const defaultNear = 800

func newFileMetrics(r prometheus.Registerer, stats *FileStats) (*fileMetrics, error) {
	if r == nil && stats == nil {
		return nil, nil //nolint:nilnil // no metrics
	}
	if r == nil {
		r = prometheus.NewRegistry() // that nobody reads
	}
	if stats == nil {
		stats = new(FileStats)
	}
	buckets := make([]float64, len(callTimes))
	for i, t := range callTimes {
		buckets[i] = t.Seconds()
	}
	m := &fileMetrics{
		stats:    stats,
		calls:    prometheus.NewCounterVec(prometheus.CounterOpts{Name: "ratelimit_service_total_requests", Help: "Calls."}, []string{"grpc_method"}),                              //nolint:promlinter // the name is that of the other service
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "ratelimit_service_should_rate_limit_error", Help: "Calls that ended in an error."}, []string{"err_type"}), //nolint:promlinter // likewise
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "ratelimit_service_response_time_seconds", Help: "Time of a call.",
			Buckets: buckets,
		}),
	}
	m.calls.WithLabelValues("ShouldRateLimit")
	m.failures.WithLabelValues("service")
	err := errors.Join(r.Register(m.calls), r.Register(m.failures), r.Register(m.duration))
	for i, help := range [hitsKinds]string{
		hitsTotal: "Hits of a limit.", hitsWithin: "Hits of calls within the limit.", hitsNear: "Hits above eight tenths of the limit, and not above it.",
		hitsOver: "Hits above the limit.", hitsShadow: "Hits above a limit in shadow mode.",
	} {
		m.hits[i] = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "ratelimit_service_rate_limit_" + hitsNames()[i], Help: help}, []string{"domain", "key1", "key2"})
		err = errors.Join(err, r.Register(m.hits[i]))
	}
	return m, err
}

// use makes the series those of the rules. The series of other rules end.
func (m *fileMetrics) use(rules *descriptor.Rules) []fileSeries {
	if m == nil {
		return nil
	}
	series, labels := make([]fileSeries, rules.Len()), make([][3]string, rules.Len())
	keep := m.stats.replace()
	for _, d := range rules.Domains() {
		for _, rule := range d.Rules() {
			of, _ := descriptor.Quote(rule)
			if len(of.Keys) == 0 {
				continue
			}
			s := &series[rule.Index()]
			s.labels = [3]string{d.Name()}
			copy(s.labels[1:], of.Keys)
			labels[rule.Index()] = s.labels
			s.stat = keep(statName(d.Name(), of.Keys))
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
	return series
}

// add counts hits of a rule.
func (m *fileMetrics) add(kind int, of fileSeries, hits int64) {
	if hits > 0 {
		m.hits[kind].WithLabelValues(of.labels[0], of.labels[1], of.labels[2]).Add(float64(hits))
		of.stat[kind].Add(hits)
	}
}

// count counts the call.
func (m *fileMetrics) count(st *state, c *call) {
	if m == nil || !ofFile(&c.plan) {
		return
	}
	if c.options.Files.Shadow && slices.ContainsFunc(c.plan.Outcomes, func(o descriptor.Outcome) bool { return c.over(&o) }) {
		m.stats.shadowed.Add(1)
	}
	near := cmp.Or(c.options.Files.Near, defaultNear)
	for i := range c.plan.Outcomes {
		o := &c.plan.Outcomes[i]
		if o.Rule == nil || st.files[o.Rule.Index()].stat == nil {
			continue
		}
		of, hits := st.files[o.Rule.Index()], int64(min(c.in.HitsOf(i), limiter.MaxTokens)) // #nosec G115 -- it fits
		m.add(hitsTotal, of, hits)
		if shadow := shadowOf(c.shadows, i); o.Rule.Shadow() && shadow != nil {
			m.countLimit(of, &shadow.status, hits, near, shadow.denied, false)
			if shadow.denied {
				m.add(hitsShadow, of, hits)
			}
			continue
		}
		if s := tightest(c.statuses(o)); s != nil {
			m.countLimit(of, s, hits, near, c.over(o), o.Mode == limiter.Charge || !c.verdict.denied)
		} else if c.over(o) {
			m.add(hitsOver, of, hits)
		}
	}
}

// countLimit counts the hits of one limit by the part of it that they fill. near is where hits are near it, in thousandths. taken says that the
// status is after them.
func (m *fileMetrics) countLimit(of fileSeries, s *limiter.LimitStatus, hits, near int64, over, taken bool) {
	limit := s.Limit.Capacity
	before := limit - s.Available/limiter.Milli
	if taken {
		before -= hits
	}
	after := before + hits
	part := func(from, to int64) int64 { return max(0, min(after, to)-max(before, from)) }
	m.add(hitsNear, of, part(limit*near/1000, limit))
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
	m.stats.call(took, err)
	m.calls.WithLabelValues("ShouldRateLimit").Inc()
	m.duration.Observe(took.Seconds())
	if err != nil {
		m.failures.WithLabelValues("service").Inc()
	}
}
