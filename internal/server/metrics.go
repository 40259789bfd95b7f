package server

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/pkg/embedded"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// serviceMetrics are the metrics of the program around the service.
type serviceMetrics struct {
	reloads    *prometheus.CounterVec
	successful prometheus.Gauge
	loadedAt   prometheus.Gauge
}

// newServiceMetrics registers them, with those of the process and of the Go runtime.
func newServiceMetrics(reg prometheus.Registerer) (*serviceMetrics, error) {
	m := &serviceMetrics{
		reloads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ratelimit_config_loads_total", Help: "Loads of the configuration, by result: ok or error.",
		}, []string{"result"}),
		successful: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "ratelimit_config_last_load_successful", Help: "1 while the newest configuration files are in force, 0 while they are wrong and earlier ones stay in force.",
		}),
		loadedAt: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "ratelimit_config_loaded_timestamp_seconds", Help: "Time at which the configuration in force was loaded, in Unix time.",
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
		Name: "ratelimit_build_info", Help: "Always 1; the label is the version of the program.",
		ConstLabels: prometheus.Labels{"version": command.Version()},
	}, func() float64 { return 1 })
	return []prometheus.Collector{build, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})}
}

// registerCacheMetrics registers those of the cache of stored limits and entities.
func registerCacheMetrics(reg prometheus.Registerer, stats func() limiter.CacheStats) error {
	return errors.Join(
		reg.Register(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "ratelimit_cache_hits_total", Help: "Reads of limits and entities that the cache answered.",
		}, func() float64 { return float64(stats().Hits) })),
		reg.Register(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "ratelimit_cache_misses_total", Help: "Reads of limits and entities that the store answered.",
		}, func() float64 { return float64(stats().Misses) })),
		reg.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "ratelimit_cache_records", Help: "Records in the cache, with those of limits and entities that do not exist.",
		}, func() float64 { return float64(stats().Size) })),
	)
}

// registerBucketMetrics registers those of the buckets of an embedded store.
func registerBucketMetrics(reg prometheus.Registerer, store *embedded.Store) error {
	return errors.Join(
		reg.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "ratelimit_store_buckets", Help: "Buckets in the embedded store; full buckets are not stored.",
		}, func() float64 { return float64(store.Buckets()) })),
		reg.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "ratelimit_store_overflow_buckets", Help: "Shared buckets, for keys without room in the full store.",
		}, func() float64 { return float64(store.Overflow().Buckets) })),
		reg.Register(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "ratelimit_store_overflow_decisions_total", Help: "Decisions of shared buckets, because the store was full.",
		}, func() float64 { return float64(store.Overflow().Decisions) })),
		reg.Register(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "ratelimit_store_overflow_refused_total", Help: "Decisions denied without a bucket: the store had no room for another shared bucket.",
		}, func() float64 { return float64(store.Overflow().Refused) })),
	)
}

func (m *serviceMetrics) loaded(at time.Time) {
	m.reloads.WithLabelValues("ok").Inc()
	m.successful.Set(1)
	m.loadedAt.Set(float64(at.Unix()))
}

func (m *serviceMetrics) failed() {
	m.reloads.WithLabelValues("error").Inc()
	m.successful.Set(0)
}
