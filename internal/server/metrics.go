package server

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/pkg/admin"
	"github.com/ratelimit/ratelimit/pkg/embedded"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// serviceMetrics are the metrics of the program around the service.
type serviceMetrics struct {
	reloads    *prometheus.CounterVec
	successful prometheus.Gauge
	loadedAt   prometheus.Gauge
	good, bad  atomic.Int64 // loads by their result
}

// newServiceMetrics registers them, with those of the process and of the Go runtime.
func newServiceMetrics(reg prometheus.Registerer) (*serviceMetrics, error) {
	m := &serviceMetrics{
		reloads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ratelimit_config_loads_total", Help: "Loads of the configuration: ok or error.",
		}, []string{"result"}),
		successful: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "ratelimit_config_last_load_successful", Help: "1 while the newest configuration files are in force, 0 while earlier ones stay in force.",
		}),
		loadedAt: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "ratelimit_config_loaded_timestamp_seconds", Help: "Unix time at which the configuration in force was loaded.",
		}),
	}
	for _, c := range append(ProgramMetrics(), m.reloads, m.successful, m.loadedAt) {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	m.reloads.WithLabelValues("ok")
	m.reloads.WithLabelValues("error")
	return m, nil
}

// ProgramMetrics returns the metrics of the program's version, of the process and of the Go runtime.
func ProgramMetrics() []prometheus.Collector {
	build := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "ratelimit_build_info", Help: "1, with the version of the program.",
		ConstLabels: prometheus.Labels{"version": command.Version()},
	}, func() float64 { return 1 })
	return []prometheus.Collector{build, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})}
}

// newCacheMetrics reports the cache of stored limits and entities.
func newCacheMetrics(stats func() limiter.CacheStats) *StatsMetrics[limiter.CacheStats] {
	m := &StatsMetrics[limiter.CacheStats]{Prefix: "ratelimit_cache_", Look: stats}
	m.Count("hits_total", "Reads of limits and entities from the cache.", func(s *limiter.CacheStats) int64 { return int64(s.Hits) })     // #nosec G115 -- it never gets there
	m.Count("misses_total", "Reads of limits and entities from the store.", func(s *limiter.CacheStats) int64 { return int64(s.Misses) }) // #nosec G115 -- the same
	m.Gauge("records", "Records in the cache, also of missing limits and entities.", func(s *limiter.CacheStats) float64 { return float64(s.Size) })
	return m
}

// bucketStats are the numbers of the buckets of an embedded store.
type bucketStats struct {
	embedded.Overflow

	stored int64
}

// newBucketMetrics reports the buckets of an embedded store.
func newBucketMetrics(store *embedded.Store) *StatsMetrics[bucketStats] {
	m := &StatsMetrics[bucketStats]{Prefix: "ratelimit_store_", Look: func() bucketStats { return bucketStats{store.Overflow(), store.Buckets()} }}
	m.Gauge("buckets", "Buckets in the embedded store; full buckets are not stored.", func(s *bucketStats) float64 { return float64(s.stored) })
	m.Gauge("overflow_buckets", "Shared buckets, for keys without room in the full store.", func(s *bucketStats) float64 { return float64(s.Buckets) })
	m.Count("overflow_decisions_total", "Decisions of shared buckets.", func(s *bucketStats) int64 { return s.Decisions })
	m.Count("overflow_refused_total", "Decisions denied: no room for another shared bucket.", func(s *bucketStats) int64 { return s.Refused })
	return m
}

// loaded notes a load. One of new rules of a control plane says nothing of the newest files.
func (m *serviceMetrics) loaded(newest admin.Origin, at time.Time) {
	m.good.Add(1)
	m.reloads.WithLabelValues("ok").Inc()
	if newest == admin.FromFiles {
		m.successful.Set(1)
	}
	m.loadedAt.Set(float64(at.Unix()))
}

func (m *serviceMetrics) failed() {
	m.bad.Add(1)
	m.reloads.WithLabelValues("error").Inc()
	m.successful.Set(0)
}
