package main

import (
	"math"

	"github.com/prometheus/client_golang/prometheus"
)

// statsMetrics reports numbers that are all of one reading.
type statsMetrics[S any] struct {
	prefix  string
	look    func() S
	metrics []statsMetric[S]
}

type statsMetric[S any] struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*S) float64
}

func (m *statsMetrics[S]) count(name, help string, value func(*S) int64) {
	m.add(prometheus.CounterValue, name, help, func(s *S) float64 { return float64(value(s)) })
}

// countBy adds a counter of one value of a label.
func (m *statsMetrics[S]) countBy(name, help, label, is string, value func(*S) float64) {
	m.metrics = append(m.metrics, statsMetric[S]{prometheus.NewDesc(m.prefix+name, help, nil, prometheus.Labels{label: is}), prometheus.CounterValue, value})
}

// gauge adds a gauge. It is absent while its value is NaN.
func (m *statsMetrics[S]) gauge(name, help string, value func(*S) float64) {
	m.add(prometheus.GaugeValue, name, help, value)
}

func (m *statsMetrics[S]) add(kind prometheus.ValueType, name, help string, value func(*S) float64) {
	m.metrics = append(m.metrics, statsMetric[S]{prometheus.NewDesc(m.prefix+name, help, nil, nil), kind, value})
}

// Describe implements prometheus.Collector.
func (m *statsMetrics[S]) Describe(out chan<- *prometheus.Desc) {
	for i := range m.metrics {
		out <- m.metrics[i].desc
	}
}

// Collect implements prometheus.Collector.
func (m *statsMetrics[S]) Collect(out chan<- prometheus.Metric) {
	state := m.look()
	for i := range m.metrics {
		if value := m.metrics[i].value(&state); !math.IsNaN(value) {
			out <- prometheus.MustNewConstMetric(m.metrics[i].desc, m.metrics[i].kind, value)
		}
	}
}
