package awscmd

import (
	"math"

	"github.com/ratelimit/ratelimit/internal/server"
	"github.com/ratelimit/ratelimit/pkg/aggregator"
)

// NewAggregateMetrics reports the work of an aggregator.
func NewAggregateMetrics(stats func() aggregator.Stats) *server.StatsMetrics[aggregator.Stats] {
	m := &server.StatsMetrics[aggregator.Stats]{Prefix: "ratelimit_aggregate_", Look: stats}
	m.Count("records_total", "Records of the stream that are done, of all items.", func(s *aggregator.Stats) int64 { return s.Records })
	m.Count("snapshots_total", "Writes of usage snapshots.", func(s *aggregator.Stats) int64 { return s.Snapshots })
	m.Count("repeated_records_total", "Records that a snapshot had already, once for each window.", func(s *aggregator.Stats) int64 { return s.Repeated })
	m.Count("losses_total", "Gaps: shards, or parts of them, that the stream dropped unread.", func(s *aggregator.Stats) int64 { return s.Losses })
	m.Count("dead_letters_total", "Records that cannot be counted, each once; the log has their keys.", func(s *aggregator.Stats) int64 { return s.DeadLetters })
	m.Count("misdated_records_total", "Records counted at the time of their write, as that of their decision cannot be right.", func(s *aggregator.Stats) int64 { return s.Misdated })
	m.Count("archived_events_total", "Audit events in the archive.", func(s *aggregator.Stats) int64 { return s.Archived })
	m.Count("splits_total", "Splits of buckets finished for a replica.", func(s *aggregator.Stats) int64 { return s.Splits })
	m.Count("failures_total", "Calls that failed and are made again.", func(s *aggregator.Stats) int64 { return s.Failures })
	m.Gauge("shards", "Shards of the stream that this process reads.", func(s *aggregator.Stats) float64 { return float64(s.Shards) })
	m.Gauge("stream_missing", "1 = the stream has ended, and the table has no other.", func(s *aggregator.Stats) float64 {
		if s.Missing {
			return 1
		}
		return 0
	})
	m.Gauge("oldest_position_timestamp_seconds", "Unix time up to which this process has done all of its shards; absent where it reads none.", func(s *aggregator.Stats) float64 {
		if s.Oldest.IsZero() {
			return math.NaN()
		}
		return float64(s.Oldest.UnixMilli()) / 1000
	})
	return m
}
