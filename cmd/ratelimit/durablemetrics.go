package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/ratelimit/ratelimit/pkg/embedded"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// durableMetrics reports on the file of an embedded store, and on what its start found.
type durableMetrics struct {
	store   *embedded.Store
	metrics []durableMetric
}

type durableMetric struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*embedded.Stats) float64
}

func newDurableMetrics(store *embedded.Store) *durableMetrics {
	m := &durableMetrics{store: store}
	r := store.Recovery()
	m.add(prometheus.GaugeValue, "recovered_buckets", "Buckets in the file when the store was opened.", constant(float64(r.Buckets)))
	m.add(prometheus.GaugeValue, "open_blocks", "Blocks of tokens that were open when the previous process ended; 0 after a clean shutdown.", constant(float64(r.Blocks)))
	m.add(prometheus.GaugeValue, "lost_tokens", "Tokens in those blocks: the most that a crash can have lost.", constant(float64(r.Lost)/limiter.Milli))
	m.add(prometheus.GaugeValue, "file_bytes", "Size of the data file.", func(s *embedded.Stats) float64 { return float64(s.Bytes) })
	m.add(prometheus.GaugeValue, "file_free_bytes", "Free space within the data file.", func(s *embedded.Stats) float64 { return float64(s.FreeBytes) })
	m.add(prometheus.CounterValue, "commits_total", "Transactions written to the data file.", func(s *embedded.Stats) float64 { return float64(s.Commits) })
	m.add(prometheus.CounterValue, "commit_errors_total", "Transactions that could not be written; their tokens were not given.", func(s *embedded.Stats) float64 { return float64(s.CommitErrors) })
	m.add(prometheus.GaugeValue, "last_commit_seconds", "Duration of the last transaction, fsync included.", func(s *embedded.Stats) float64 { return s.LastCommit.Seconds() })
	return m
}

func constant(v float64) func(*embedded.Stats) float64 {
	return func(*embedded.Stats) float64 { return v }
}

func (m *durableMetrics) add(kind prometheus.ValueType, name, help string, value func(*embedded.Stats) float64) {
	m.metrics = append(m.metrics, durableMetric{prometheus.NewDesc("ratelimit_store_"+name, help, nil, nil), kind, value})
}

// Describe implements prometheus.Collector.
func (m *durableMetrics) Describe(out chan<- *prometheus.Desc) {
	for i := range m.metrics {
		out <- m.metrics[i].desc
	}
}

// Collect implements prometheus.Collector: all numbers are of one look.
func (m *durableMetrics) Collect(out chan<- prometheus.Metric) {
	stats := m.store.Stats()
	for i := range m.metrics {
		out <- prometheus.MustNewConstMetric(m.metrics[i].desc, m.metrics[i].kind, m.metrics[i].value(&stats))
	}
}
