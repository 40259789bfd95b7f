package server

import (
	"net/http"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/ratelimit/ratelimit/config"
)

// metricsSide is the listener for metrics alone. They have those of envoyproxy/ratelimit too. The zero value listens
// nowhere.
type metricsSide struct {
	httpSide

	registry *prometheus.Registry // of envoyproxy/ratelimit; nil = there is no listener
}

// begin makes the registry, where the configuration has a listener.
func (m *metricsSide) begin(cfg *config.Metrics, own *serviceMetrics) error {
	if cfg.Address == "" {
		return nil
	}
	m.registry = prometheus.NewRegistry()
	for name, loads := range map[string]*atomic.Int64{"success": &own.good, "error": &own.bad} {
		err := m.registry.Register(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "ratelimit_service_config_load_" + name, Help: "Loads of the configuration with this result.",
		}, func() float64 { return float64(loads.Load()) }))
		if err != nil {
			return err
		}
	}
	return nil
}

// registerer is that of the metrics of envoyproxy/ratelimit; nil = they are not counted.
func (m *metricsSide) registerer() prometheus.Registerer {
	if m.registry == nil {
		return nil
	}
	return m.registry
}

// handler answers with all metrics at a path.
func (m *metricsSide) handler(path string, others prometheus.Gatherer) http.Handler {
	mux := http.NewServeMux()
	mux.Handle(path, promhttp.HandlerFor(prometheus.Gatherers{others, m.registry}, promhttp.HandlerOpts{}))
	return mux
}
