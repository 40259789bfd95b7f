package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/ratelimit/ratelimit/pkg/dynamo"
)

// tableMetrics reports what a DynamoDB store has done, and on its clock.
type tableMetrics struct {
	look    func() tableState
	metrics []tableMetric
}

// tableState is one look at a store.
type tableState struct {
	dynamo.Stats

	clock dynamo.ClockState
}

type tableMetric struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*tableState) float64
}

func newTableMetrics(store *dynamo.Store, clock *dynamo.Clock) *tableMetrics {
	m := &tableMetrics{look: func() tableState { return tableState{store.Stats(), clock.State()} }}
	m.count("writes_total", "Conditional writes sent for buckets.", func(s *tableState) int64 { return s.Writes })
	m.count("refused_writes_total", "Writes for buckets whose condition did not hold; DynamoDB bills each.", func(s *tableState) int64 { return s.Refused })
	m.count("resent_writes_total", "Writes for buckets that were sent again, after a throttle or a lost reply.", func(s *tableState) int64 { return s.Resent })
	m.count("reads_total", "Reads of buckets.", func(s *tableState) int64 { return s.Reads })
	m.gauge("leases", "Token leases that this process holds.", func(s *tableState) float64 { return float64(s.Leases) })
	m.count("lease_grants_total", "Token leases granted to this process.", func(s *tableState) int64 { return s.Granted })
	m.count("lease_renewals_total", "Token leases that were renewed before they ran out.", func(s *tableState) int64 { return s.Renewed })
	m.count("lease_returns_total", "Token leases whose rest was given back.", func(s *tableState) int64 { return s.Returned })
	m.count("lease_reaps_total", "Token leases of processes that ended without returning them, freed by this one.", func(s *tableState) int64 { return s.Reaped })
	m.count("lease_decisions_total", "Decisions on buckets that were served from token leases, without a call.", func(s *tableState) int64 { return s.Served })
	m.count("late_admissions_total", "Calls admitted after their deadline by an estimate, while DynamoDB was slow; their tokens are taken later.", func(s *tableState) int64 { return s.LateAdmitted })
	m.count("late_denials_total", "Calls denied after their deadline by an estimate, while DynamoDB was slow.", func(s *tableState) int64 { return s.LateDenied })
	m.gauge("owed", "Requests that wait to be written after their callers left: tokens to give back, and those of late calls.", func(s *tableState) float64 { return float64(s.Owed) })
	m.count("lost_give_backs_total", "Takes for requests that were not admitted that were not given back, or may not have been, and takes of admitted requests that were never made.", func(s *tableState) int64 { return s.Lost })
	m.count("splits_total", "Buckets, or shards of one, that were split in two because they were written too often for one item.", func(s *tableState) int64 { return s.Splits })
	m.count("merges_total", "Pairs of shards that were made one again after a quiet time.", func(s *tableState) int64 { return s.Merges })
	m.count("halts_total", "Times that refills stopped because the clock could not be trusted.", func(s *tableState) int64 { return s.Halts })
	m.count("outages_total", "Times that DynamoDB was taken for unavailable, as it did not answer.", func(s *tableState) int64 { return s.Outages })
	m.gauge("unavailable", "1 while calls are refused at once, because DynamoDB did not answer those before.", func(s *tableState) float64 { return truth(s.Open) })
	m.gauge("lanes", "Buckets that this process remembers.", func(s *tableState) float64 { return float64(s.Lanes) })
	m.gauge("clock_offset_seconds", "What is added to this machine's clock, as DynamoDB's replies prove it wrong.", func(s *tableState) float64 { return s.clock.Offset.Seconds() })
	m.gauge("clock_uncertainty_seconds", "How far off the corrected clock may be, for all that is known.", func(s *tableState) float64 { return s.clock.Uncertainty.Seconds() })
	m.gauge("clock_trusted", "1 while refills go by the clock, 0 while it may be off by too much and nothing is refilled.", func(s *tableState) float64 { return truth(s.clock.Trusted) })
	return m
}

// truth is 1 for true.
func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func (m *tableMetrics) count(name, help string, value func(*tableState) int64) {
	m.add(prometheus.CounterValue, name, help, func(s *tableState) float64 { return float64(value(s)) })
}

func (m *tableMetrics) gauge(name, help string, value func(*tableState) float64) {
	m.add(prometheus.GaugeValue, name, help, value)
}

func (m *tableMetrics) add(kind prometheus.ValueType, name, help string, value func(*tableState) float64) {
	m.metrics = append(m.metrics, tableMetric{prometheus.NewDesc("ratelimit_dynamodb_"+name, help, nil, nil), kind, value})
}

// Describe implements prometheus.Collector.
func (m *tableMetrics) Describe(out chan<- *prometheus.Desc) {
	for i := range m.metrics {
		out <- m.metrics[i].desc
	}
}

// Collect implements prometheus.Collector: all numbers are of one look.
func (m *tableMetrics) Collect(out chan<- prometheus.Metric) {
	state := m.look()
	for i := range m.metrics {
		out <- prometheus.MustNewConstMetric(m.metrics[i].desc, m.metrics[i].kind, m.metrics[i].value(&state))
	}
}
