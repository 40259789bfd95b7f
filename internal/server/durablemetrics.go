package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/ratelimit/ratelimit/pkg/embedded"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// newDurableMetrics reports on the file of an embedded store, and on the findings of its start.
func newDurableMetrics(store *embedded.Store) *StatsMetrics[embedded.Stats] {
	m := &StatsMetrics[embedded.Stats]{Prefix: "ratelimit_store_", Look: store.Stats}
	r := store.Recovery()
	m.Gauge("recovered_buckets", "Buckets in the file when the store was opened.", constant(float64(r.Buckets)))
	m.Gauge("open_blocks", "Blocks of tokens open when the previous process ended; 0 after a clean shutdown.", constant(float64(r.Blocks)))
	m.Gauge("lost_tokens", "Tokens in those blocks: the most that a crash can have lost.", constant(float64(r.Lost)/limiter.Milli))
	m.Gauge("file_bytes", "Size of the data file.", func(s *embedded.Stats) float64 { return float64(s.Bytes) })
	m.Gauge("file_free_bytes", "Free space within the data file.", func(s *embedded.Stats) float64 { return float64(s.FreeBytes) })
	m.add(prometheus.CounterValue, "commits_total", "Transactions written to the data file.", func(s *embedded.Stats) float64 { return float64(s.Commits) })
	m.add(prometheus.CounterValue, "commit_errors_total", "Transactions that could not be written; their tokens were not given.", func(s *embedded.Stats) float64 { return float64(s.CommitErrors) })
	m.Gauge("last_commit_seconds", "Duration of the last transaction, fsync included.", func(s *embedded.Stats) float64 { return s.LastCommit.Seconds() })
	return m
}

func constant(v float64) func(*embedded.Stats) float64 {
	return func(*embedded.Stats) float64 { return v }
}
