package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/ratelimit/ratelimit/pkg/embedded"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// newDurableMetrics reports on the file of an embedded store, and on the findings of its start.
func newDurableMetrics(store *embedded.Store) *statsMetrics[embedded.Stats] {
	m := &statsMetrics[embedded.Stats]{prefix: "ratelimit_store_", look: store.Stats}
	r := store.Recovery()
	m.gauge("recovered_buckets", "Buckets in the file when the store was opened.", constant(float64(r.Buckets)))
	m.gauge("open_blocks", "Blocks of tokens that were open when the previous process ended; 0 after a clean shutdown.", constant(float64(r.Blocks)))
	m.gauge("lost_tokens", "Tokens in those blocks: the most that a crash can have lost.", constant(float64(r.Lost)/limiter.Milli))
	m.gauge("file_bytes", "Size of the data file.", func(s *embedded.Stats) float64 { return float64(s.Bytes) })
	m.gauge("file_free_bytes", "Free space within the data file.", func(s *embedded.Stats) float64 { return float64(s.FreeBytes) })
	m.add(prometheus.CounterValue, "commits_total", "Transactions written to the data file.", func(s *embedded.Stats) float64 { return float64(s.Commits) })
	m.add(prometheus.CounterValue, "commit_errors_total", "Transactions that could not be written; their tokens were not given.", func(s *embedded.Stats) float64 { return float64(s.CommitErrors) })
	m.gauge("last_commit_seconds", "Duration of the last transaction, fsync included.", func(s *embedded.Stats) float64 { return s.LastCommit.Seconds() })
	return m
}

func constant(v float64) func(*embedded.Stats) float64 {
	return func(*embedded.Stats) float64 { return v }
}
