package environment

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/pkg/rls"
)

// variables are all of that service, at its commit of July 2026, and those of ours for the store.
func variables() []variable {
	return slices.Concat(listeners(), rules(), controlPlane(), answers(), stores(), observation())
}

// accepted returns variables that ask for the state that exists already, or set up an unused store.
func accepted(names ...string) (all []variable) {
	for _, name := range names {
		all = append(all, variable{name: name})
	}
	return all
}

// ignored returns variables without effect. The log names them at the start.
func ignored(names ...string) (all []variable) {
	for _, name := range names {
		all = append(all, variable{name: name, ignored: true})
	}
	return all
}

func listeners() []variable {
	return append([]variable{
		set("HOST", parseHost, func(c *config.Config, host string) { withHost(&c.Server.HTTP.Address, host) }),
		set("PORT", parsePort, func(c *config.Config, port string) { withPort(&c.Server.HTTP.Address, port) }),
		set("GRPC_HOST", parseHost, func(c *config.Config, host string) { withHost(&c.Server.GRPC.Address, host) }),
		set("GRPC_PORT", parsePort, func(c *config.Config, port string) { withPort(&c.Server.GRPC.Address, port) }),
		set("GRPC_UDS", parseText, func(c *config.Config, path string) { c.Server.GRPC.Address = "unix:" + path }),
		set("GRPC_MAX_CONNECTION_AGE", parseDuration, func(c *config.Config, d time.Duration) { c.Server.GRPC.MaxConnectionAge = min(d, 24*time.Hour) }),
		set("GRPC_SERVER_TLS_CERT", parseText, func(c *config.Config, file string) { c.Server.GRPC.TLS.Cert = file }),
		set("GRPC_SERVER_TLS_KEY", parseText, func(c *config.Config, file string) { c.Server.GRPC.TLS.Key = file }),
		set("GRPC_CLIENT_TLS_CACERT", parseText, func(c *config.Config, file string) { c.Server.GRPC.TLS.ClientCA = file }),
		set("GRPC_CLIENT_TLS_SAN", parseText, func(c *config.Config, name string) { c.Server.GRPC.TLS.ClientName = name }),
		own("DEBUG_HOST", parseHost, func(s *Settings, host string) { s.debug.host = host }),
		own("DEBUG_PORT", parsePort, func(s *Settings, port string) { s.debug.port = port }),
		own("GRPC_SERVER_USE_TLS", parseBool, func(s *Settings, on bool) { s.tls = on }),
	}, accepted("GRPC_MAX_CONNECTION_AGE_GRACE", "GRPC_SERVER_TLS_CA_CERT")...)
}

func rules() []variable {
	return append([]variable{
		own("CONFIG_TYPE", func(text string) (bool, error) {
			if text != "FILE" && text != "GRPC_XDS_SOTW" {
				return false, fmt.Errorf("%q must be FILE or GRPC_XDS_SOTW", text)
			}
			return text == "GRPC_XDS_SOTW", nil
		}, func(s *Settings, xds bool) {
			if s.xds = xds; xds {
				s.defaults = append(s.defaults, func(c *config.Config) { c.XDS.Address = "localhost:18000" })
			}
		}),
		own("RUNTIME_ROOT", parseText, func(s *Settings, dir string) { s.runtime.root = dir }),
		own("RUNTIME_SUBDIRECTORY", parseText, func(s *Settings, dir string) { s.runtime.subdirectory = dir }),
		own("RUNTIME_APPDIRECTORY", parseText, func(s *Settings, dir string) { s.runtime.app = dir }),
		set("HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED", parseBool, func(c *config.Config, on bool) { c.Envoyproxy.NeedsDomain = on }),
		set("MERGE_DOMAIN_CONFIG", parseBool, func(c *config.Config, on bool) { c.Envoyproxy.MergeDomains = on }),
	}, accepted("RUNTIME_WATCH_ROOT", "RUNTIME_IGNOREDOTFILES")...)
}

func controlPlane() []variable {
	return append([]variable{
		// They follow CONFIG_TYPE, without which they have no effect.
		onXDS("CONFIG_GRPC_XDS_SERVER_URL", parseText, func(x *config.XDS, address string) { x.Address = address }),
		onXDS("CONFIG_GRPC_XDS_NODE_ID", parseText, func(x *config.XDS, id string) { x.Node = id }),
		onXDS("CONFIG_GRPC_XDS_NODE_METADATA", parsePairs("="), func(x *config.XDS, m map[string]string) { x.Metadata = m }),
		onXDS("CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS", parsePairs(":"), func(x *config.XDS, m map[string]string) { x.Headers = m }),
		onXDS("CONFIG_GRPC_XDS_SERVER_USE_TLS", parseBool, func(x *config.XDS, on bool) { x.TLS.Enabled = on }),
		onXDS("CONFIG_GRPC_XDS_CLIENT_TLS_CERT", parseText, func(x *config.XDS, file string) { x.TLS.Cert = file }),
		onXDS("CONFIG_GRPC_XDS_CLIENT_TLS_KEY", parseText, func(x *config.XDS, file string) { x.TLS.Key = file }),
		onXDS("CONFIG_GRPC_XDS_SERVER_TLS_CACERT", parseText, func(x *config.XDS, file string) { x.TLS.CA = file }),
		onXDS("CONFIG_GRPC_XDS_SERVER_TLS_SAN", parseText, func(x *config.XDS, name string) { x.TLS.Name = name }),
		onXDS("XDS_CLIENT_BACKOFF_INITIAL_INTERVAL", parseDuration, func(x *config.XDS, d time.Duration) { x.Retry = max(d, 100*time.Millisecond) }),
		onXDS("XDS_CLIENT_BACKOFF_MAX_INTERVAL", parseDuration, func(x *config.XDS, d time.Duration) { x.MaxRetry = max(d, 100*time.Millisecond) }),
		onXDS("XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES", parseSize, func(x *config.XDS, n int) { x.MaxMessage = n }),
		onXDS("FORCE_START_WITHOUT_INITIAL_CONFIG", parseBool, func(x *config.XDS, on bool) { x.Early = on }),
	}, accepted("CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL", "XDS_CLIENT_BACKOFF_RANDOM_FACTOR", "XDS_CLIENT_BACKOFF_JITTER")...)
}

// onXDS returns a variable of the control plane.
func onXDS[T any](name string, parse func(string) (T, error), to func(x *config.XDS, value T)) variable {
	return variable{name: name, read: func(s *Settings, text string) error {
		value, err := parse(text)
		if err == nil && s.xds {
			s.defaults = append(s.defaults, func(c *config.Config) { to(&c.XDS, value) })
		}
		return err
	}}
}

func answers() []variable {
	return []variable{
		set("LIMIT_RESPONSE_HEADERS_ENABLED", parseBool, func(c *config.Config, on bool) {
			if on {
				c.Envoyproxy.Headers.SetDefaults()
			}
		}),
		header("LIMIT_LIMIT_HEADER", func(c *config.Config) *string { return &c.Envoyproxy.Headers.Limit }),
		header("LIMIT_REMAINING_HEADER", func(c *config.Config) *string { return &c.Envoyproxy.Headers.Remaining }),
		header("LIMIT_RESET_HEADER", func(c *config.Config) *string { return &c.Envoyproxy.Headers.Reset }),
		set("SHADOW_MODE", parseBool, func(c *config.Config, on bool) { c.Envoyproxy.Shadow = on }),
		set("QUOTA_MODE", parseBool, func(c *config.Config, on bool) { c.Envoyproxy.Quota = on }),
		set("RESPONSE_DYNAMIC_METADATA", parseBool, func(c *config.Config, on bool) {
			if on {
				c.Envoyproxy.Metadata = rls.RulesMetadata
			}
		}),
	}
}

// header returns a variable with the name of a header, which has an effect where headers are on.
func header(name string, of func(*config.Config) *string) variable {
	return set(name, parseHeader, func(c *config.Config, value string) {
		if *of(c) != "" {
			*of(c) = value
		}
	})
}

// metrics returns a variable of the listener of metrics, which has an effect where that is on.
func metrics(name string, parse func(string) (string, error), to func(*config.Metrics, string)) variable {
	return set(name, parse, func(c *config.Config, value string) {
		if c.Server.Metrics.Address != "" {
			to(&c.Server.Metrics, value)
		}
	})
}

// others are variables that name a store of the other service.
func others() []string {
	return []string{"REDIS_URL", "REDIS_PERSECOND_URL", "MEMCACHE_HOST_PORT", "MEMCACHE_SRV"}
}

// ownStore are variables of our own for the store.
func ownStore() []variable {
	return []variable{
		set("RATELIMIT_TABLE", parseText, func(c *config.Config, table string) {
			c.Store.Type, c.Store.DynamoDB.Table = config.StoreDynamoDB, table
		}),
		set("RATELIMIT_REGION", parseText, func(c *config.Config, region string) { c.Store.DynamoDB.Region = region }),
		set("RATELIMIT_ENDPOINT", parseText, func(c *config.Config, url string) { c.Store.DynamoDB.Endpoint = url }),
		set("RATELIMIT_DATA", parseText, func(c *config.Config, dir string) { c.Store.Embedded.Data = dir }),
	}
}

func stores() []variable {
	return slices.Concat(ownStore(), redisServers(), ignored("REDIS_PERSECOND_URL", "REDIS_TLS_SKIP_HOSTNAME_VERIFICATION"), accepted(
		"CACHE_KEY_PREFIX", "LOCAL_CACHE_SIZE_IN_BYTES", "EXPIRATION_JITTER_MAX_SECONDS", "STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT", "MAX_SLEEPING_ROUTINES",
		"REDIS_POOL_SIZE", "REDIS_TIMEOUT", "REDIS_PIPELINE_WINDOW",
		"REDIS_PIPELINE_LIMIT", "REDIS_CLUSTER_PIPELINE_PARALLELISM", "REDIS_POOL_ON_EMPTY_BEHAVIOR",
		"REDIS_STARTUP_INITIAL_INTERVAL", "REDIS_STARTUP_MAX_INTERVAL", "REDIS_STARTUP_MAX_ELAPSED_TIME", "REDIS_HEALTH_CHECK_ACTIVE_CONNECTION",
		"REDIS_PERSECOND", "REDIS_PERSECOND_SOCKET_TYPE", "REDIS_PERSECOND_TYPE", "REDIS_PERSECOND_POOL_SIZE", "REDIS_PERSECOND_AUTH", "REDIS_PERSECOND_SENTINEL_AUTH",
		"REDIS_PERSECOND_TLS", "REDIS_PERSECOND_TIMEOUT", "REDIS_PERSECOND_PIPELINE_WINDOW", "REDIS_PERSECOND_PIPELINE_LIMIT", "REDIS_PERSECOND_CLUSTER_PIPELINE_PARALLELISM",
		"REDIS_PERSECOND_POOL_ON_EMPTY_BEHAVIOR", "MEMCACHE_HOST_PORT", "MEMCACHE_SRV", "MEMCACHE_SRV_REFRESH", "MEMCACHE_MAX_IDLE_CONNS", "MEMCACHE_TLS", "MEMCACHE_TLS_CLIENT_CERT", "MEMCACHE_TLS_CLIENT_KEY",
		"MEMCACHE_TLS_CACERT", "MEMCACHE_TLS_SKIP_HOSTNAME_VERIFICATION",
	))
}

func observation() []variable {
	return slices.Concat([]variable{
		set("LOG_LEVEL", parseLevel, func(c *config.Config, level slog.Level) { c.Log.Level = level }),
		set("LOG_FORMAT", parseFormat, func(c *config.Config, format config.LogFormat) { c.Log.Format = format }),
		set("USE_PROMETHEUS", parseBool, func(c *config.Config, on bool) {
			if on {
				c.Server.Metrics = config.Metrics{Address: "0.0.0.0:9090", Path: "/metrics"}
			}
		}),
		metrics("PROMETHEUS_ADDR", parseAddress, func(m *config.Metrics, address string) { m.Address = address }),
		metrics("PROMETHEUS_PATH", parsePath, func(m *config.Metrics, path string) { m.Path = path }),
		own("USE_STATSD", parseBool, func(s *Settings, on bool) { s.statsd.on = on }),
		own("STATSD_HOST", parseHost, func(s *Settings, host string) { s.statsd.host = host }),
		own("STATSD_PORT", parsePort, func(s *Settings, port string) { s.statsd.port = port }),
		own("DISABLE_STATS", parseBool, func(s *Settings, on bool) { s.statsd.off = on }),
		own("USE_DOG_STATSD", parseBool, func(s *Settings, on bool) { s.statsd.dog = on }),
		own("EXTRA_TAGS", parseTags, func(s *Settings, tags map[string]string) { s.statsd.tags = tags }),
		own("STATS_FLUSH_INTERVAL", parseDuration, func(s *Settings, d time.Duration) { s.statsd.interval = min(max(d, 100*time.Millisecond), time.Hour) }),
		set("NEAR_LIMIT_RATIO", parseThousandths, func(c *config.Config, part int64) { c.Envoyproxy.Near = part }),
		set("TRACING_ENABLED", parseBool, func(c *config.Config, on bool) {
			c.Tracing.On, c.Tracing.Off = on, !on
			c.Tracing.Protocol = cmp.Or(c.Tracing.Protocol, "http/protobuf")
		}),
		set("TRACING_EXPORTER_PROTOCOL", parseProtocol, func(c *config.Config, protocol string) { c.Tracing.Protocol = protocol }),
		set("TRACING_SERVICE_NAME", parseText, func(c *config.Config, name string) { c.Tracing.Service = name }),
		set("TRACING_SERVICE_NAMESPACE", parseText, func(c *config.Config, name string) { c.Tracing.Namespace = name }),
		set("TRACING_SERVICE_INSTANCE_ID", parseText, func(c *config.Config, id string) { c.Tracing.Instance = id }),
		set("TRACING_SAMPLING_RATE", parseShare, func(c *config.Config, share string) { c.Tracing.Share = share }),
	}, ignored("USE_DOG_STATSD_MOGRIFIERS", "PROMETHEUS_MAPPER_YAML", "PROMETHEUS_RESPONSE_TIME_AS_MILLISECONDS"))
}
