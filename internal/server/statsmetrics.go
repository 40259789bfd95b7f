package server

import (
	"math"

	"github.com/prometheus/client_golang/prometheus"
)

// StatsMetrics reports numbers that are all of one reading.
type StatsMetrics[S any] struct {
	Prefix  string   // of the names
	Look    func() S // reads all numbers
	metrics []statsMetric[S]
}

type statsMetric[S any] struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*S) float64
}

// Count adds a counter.
func (m *StatsMetrics[S]) Count(name, help string, value func(*S) int64) {
	m.add(prometheus.CounterValue, name, help, func(s *S) float64 { return float64(value(s)) })
}

// countBy adds a counter of one value of a label.
func (m *StatsMetrics[S]) countBy(name, help, label, is string, value func(*S) float64) {
	m.metrics = append(m.metrics, statsMetric[S]{prometheus.NewDesc(m.Prefix+name, help, nil, prometheus.Labels{label: is}), prometheus.CounterValue, value})
}

// Gauge adds a gauge. It is absent while its value is NaN.
func (m *StatsMetrics[S]) Gauge(name, help string, value func(*S) float64) {
	m.add(prometheus.GaugeValue, name, help, value)
}

func (m *StatsMetrics[S]) add(kind prometheus.ValueType, name, help string, value func(*S) float64) {
	m.metrics = append(m.metrics, statsMetric[S]{prometheus.NewDesc(m.Prefix+name, help, nil, nil), kind, value})
}

// Describe implements prometheus.Collector.
func (m *StatsMetrics[S]) Describe(out chan<- *prometheus.Desc) {
	for i := range m.metrics {
		out <- m.metrics[i].desc
	}
}

// Collect implements prometheus.Collector.
func (m *StatsMetrics[S]) Collect(out chan<- prometheus.Metric) {
	state := m.Look()
	for i := range m.metrics {
		if value := m.metrics[i].value(&state); !math.IsNaN(value) {
			out <- prometheus.MustNewConstMetric(m.metrics[i].desc, m.metrics[i].kind, value)
		}
	}
}
