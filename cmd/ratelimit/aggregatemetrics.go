package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/ratelimit/ratelimit/pkg/aggregator"
)

// aggregateMetrics reports the work of an aggregator.
type aggregateMetrics struct {
	stats   func() aggregator.Stats
	metrics []aggregateMetric
}

type aggregateMetric struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*aggregator.Stats) float64
}

func newAggregateMetrics(stats func() aggregator.Stats) *aggregateMetrics {
	m := &aggregateMetrics{stats: stats}
	count := func(name, help string, value func(*aggregator.Stats) int64) {
		m.add(prometheus.CounterValue, name, help, func(s *aggregator.Stats) float64 { return float64(value(s)) })
	}
	count("records_total", "Records of the stream that are done, those of other items than buckets too.", func(s *aggregator.Stats) int64 { return s.Records })
	count("snapshots_total", "Writes of usage snapshots.", func(s *aggregator.Stats) int64 { return s.Snapshots })
	count("repeated_records_total", "Records that a snapshot had already, once for each window.", func(s *aggregator.Stats) int64 { return s.Repeated })
	count("losses_total", "Gaps in the stream: records that it dropped before they were counted.", func(s *aggregator.Stats) int64 { return s.Losses })
	count("dead_letters_total", "Records that cannot be counted; the log has their keys.", func(s *aggregator.Stats) int64 { return s.DeadLetters })
	count("failures_total", "Calls that failed and are made again.", func(s *aggregator.Stats) int64 { return s.Failures })
	m.add(prometheus.GaugeValue, "shards", "Shards of the stream that this process reads.", func(s *aggregator.Stats) float64 { return float64(s.Shards) })
	m.add(prometheus.GaugeValue, "newest_record_timestamp_seconds", "Time of the write of the newest record that is done, in Unix time; 0 = none yet.", func(s *aggregator.Stats) float64 {
		if s.Newest.IsZero() {
			return 0
		}
		return float64(s.Newest.UnixMilli()) / 1000
	})
	return m
}

func (m *aggregateMetrics) add(kind prometheus.ValueType, name, help string, value func(*aggregator.Stats) float64) {
	m.metrics = append(m.metrics, aggregateMetric{prometheus.NewDesc("ratelimit_aggregate_"+name, help, nil, nil), kind, value})
}

// Describe implements prometheus.Collector.
func (m *aggregateMetrics) Describe(to chan<- *prometheus.Desc) {
	for i := range m.metrics {
		to <- m.metrics[i].desc
	}
}

// Collect implements prometheus.Collector.
func (m *aggregateMetrics) Collect(to chan<- prometheus.Metric) {
	stats := m.stats()
	for i := range m.metrics {
		of := &m.metrics[i]
		to <- prometheus.MustNewConstMetric(of.desc, of.kind, of.value(&stats))
	}
}
