package environment_test

import (
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/internal/environment"
	"github.com/ratelimit/ratelimit/pkg/rls"
)

// lookup returns the variables of a map.
func lookup(variables map[string]string) environment.Lookup {
	return func(name string) (string, bool) {
		value, ok := variables[name]
		return value, ok
	}
}

// read returns the configuration that variables make of the defaults of the program.
func read(t *testing.T, variables map[string]string) (*environment.Settings, config.Config) {
	t.Helper()
	s, err := environment.Read(lookup(variables))
	if err != nil {
		t.Fatal(err)
	}
	c := config.Config{Server: config.Server{Metrics: config.Metrics{Path: "/metrics"}}, XDS: config.XDS{Retry: time.Second, MaxRetry: time.Minute}}
	s.Defaults(&c)
	return s, c
}

// Without a variable the defaults are those of that service.
func TestDefaults(t *testing.T) {
	t.Parallel()
	s, c := read(t, nil)
	if s.Rules != "/srv/runtime_data/current/config" || c.Server.HTTP.Address != "0.0.0.0:8080" || c.Server.GRPC.Address != "0.0.0.0:8081" || c.Server.GRPC.MaxConnectionAge != 24*time.Hour {
		t.Errorf("rules %s, %+v", s.Rules, c.Server)
	}
	if c.Envoyproxy != (config.Envoyproxy{FileOptions: rls.FileOptions{Metadata: rls.NoMetadata}}) || c.Server.Metrics.Address != "" || c.XDS.Address != "" || c.XDS.Node != "default" {
		t.Errorf("%+v %+v", c.Envoyproxy, c.XDS)
	}
}

// Each variable has its effect.
func TestEveryVariable(t *testing.T) {
	t.Parallel()
	s, c := read(t, map[string]string{
		"HOST": "::", "PORT": "9485", "GRPC_HOST": "127.0.0.1", "GRPC_PORT": "9484", "GRPC_MAX_CONNECTION_AGE": "1h",
		"GRPC_SERVER_USE_TLS": "true", "GRPC_SERVER_TLS_CERT": "c", "GRPC_SERVER_TLS_KEY": "k", "GRPC_CLIENT_TLS_CACERT": "ca", "GRPC_CLIENT_TLS_SAN": "name",
		"CONFIG_TYPE": "GRPC_XDS_SOTW", "CONFIG_GRPC_XDS_SERVER_URL": "h:1", "CONFIG_GRPC_XDS_NODE_ID": "n", "CONFIG_GRPC_XDS_NODE_METADATA": "a=b, c=d",
		"CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS": "x:y", "CONFIG_GRPC_XDS_SERVER_USE_TLS": "true", "CONFIG_GRPC_XDS_CLIENT_TLS_CERT": "c2", "CONFIG_GRPC_XDS_CLIENT_TLS_KEY": "k2",
		"CONFIG_GRPC_XDS_SERVER_TLS_CACERT": "ca2", "CONFIG_GRPC_XDS_SERVER_TLS_SAN": "san", "XDS_CLIENT_BACKOFF_INITIAL_INTERVAL": "10s", "XDS_CLIENT_BACKOFF_MAX_INTERVAL": "20s",
		"XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES": "1000000", "FORCE_START_WITHOUT_INITIAL_CONFIG": "true", "MERGE_DOMAIN_CONFIG": "true",
		"LIMIT_RESPONSE_HEADERS_ENABLED": "true", "LIMIT_LIMIT_HEADER": "X-L", "SHADOW_MODE": "true", "QUOTA_MODE": "true", "RESPONSE_DYNAMIC_METADATA": "true",
		"USE_PROMETHEUS": "true", "PROMETHEUS_ADDR": ":19001", "PROMETHEUS_PATH": "/m", "LOG_LEVEL": "WARNING", "LOG_FORMAT": "json", "RATELIMIT_TABLE": "t", "RATELIMIT_REGION": "r",
		"DEBUG_PORT": "6070", "DEBUG_HOST": "127.0.0.1", "USE_STATSD": "true", "USE_DOG_STATSD": "true", "STATSD_HOST": "stats", "STATSD_PORT": "9125", "STATS_FLUSH_INTERVAL": "1s",
		"DISABLE_STATS": "false", "EXTRA_TAGS": "a:b,c:d", "NEAR_LIMIT_RATIO": "0.75", "HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED": "true",
		"TRACING_ENABLED": "true", "TRACING_EXPORTER_PROTOCOL": "grpc", "TRACING_SERVICE_NAME": "sn", "TRACING_SERVICE_NAMESPACE": "ns", "TRACING_SERVICE_INSTANCE_ID": "id", "TRACING_SAMPLING_RATE": "0.5",
	})
	want := config.Config{
		Server: config.Server{
			HTTP:    config.HTTP{Address: "[::]:9485", Charges: true},
			GRPC:    config.GRPC{Address: "127.0.0.1:9484", MaxConnectionAge: time.Hour, TLS: config.TLS{Cert: "c", Key: "k", ClientCA: "ca", ClientName: "name"}},
			Metrics: config.Metrics{Address: "0.0.0.0:19001", Path: "/m"},
			Statsd:  config.Statsd{Address: "stats:9125", Protocol: config.DogStatsd, Interval: time.Second, Tags: map[string]string{"a": "b", "c": "d"}},
			Debug:   config.Debug{Address: "127.0.0.1:6070"},
		},
		Tracing: config.Tracing{On: true, Protocol: "grpc", Service: "sn", Namespace: "ns", Instance: "id", Share: "0.5"},
		Store:   config.Store{Type: config.StoreDynamoDB, DynamoDB: config.DynamoDB{Table: "t", Region: "r"}},
		Envoyproxy: config.Envoyproxy{MergeDomains: true, NeedsDomain: true, FileOptions: rls.FileOptions{
			Headers: rls.FileHeaders{Limit: "X-L", Remaining: "RateLimit-Remaining", Reset: "RateLimit-Reset"}, Metadata: rls.RulesMetadata, Shadow: true, Quota: true, Near: 750,
		}},
		XDS: config.XDS{
			Address: "h:1", Node: "n", Metadata: map[string]string{"a": "b", "c": "d"}, Headers: map[string]string{"x": "y"},
			TLS: config.ClientTLS{Enabled: true, CA: "ca2", Cert: "c2", Key: "k2", Name: "san"}, Early: true, Retry: 10 * time.Second, MaxRetry: 20 * time.Second, MaxMessage: 1_000_000,
		},
		Log: config.Log{Level: 4, Format: config.LogJSON},
	}
	if diff := cmp.Diff(want, c, cmpopts.IgnoreUnexported(config.Config{}), cmpopts.IgnoreFields(config.Config{}, "Static")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if s.Rules != "" || len(s.Ignored) > 0 || len(s.Accepted) > 0 {
		t.Errorf("rules %q, accepted %q, ignored %q", s.Rules, s.Accepted, s.Ignored)
	}
}

// A secret in a variable is not repeated, and all mistakes are told at once.
func TestMistakes(t *testing.T) {
	t.Parallel()
	_, err := environment.Read(lookup(map[string]string{
		"CONFIG_TYPE": "GRPC_XDS_SOTW", "CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS": "authorization=hush", "LIMIT_LIMIT_HEADER": "a b", "PROMETHEUS_PATH": "metrics", "GRPC_SERVER_USE_TLS": "true",
		"EXTRA_TAGS": "a:b#c", "NEAR_LIMIT_RATIO": "2", "TRACING_SAMPLING_RATE": "x", "TRACING_EXPORTER_PROTOCOL": "udp",
	}))
	if err == nil || strings.Contains(err.Error(), "hush") {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{"CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS: must be pairs such as key:value", "LIMIT_LIMIT_HEADER", "PROMETHEUS_PATH", "EXTRA_TAGS: tag", "NEAR_LIMIT_RATIO", "TRACING_SAMPLING_RATE", "TRACING_EXPORTER_PROTOCOL", "GRPC_SERVER_USE_TLS: needs GRPC_SERVER_TLS_CERT"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// A file of ours is not taken over by variables that other programs have too.
func TestStart(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		variable string
		file     bool
		want     bool
	}{
		{"REDIS_URL", false, true}, {"REDIS_URL", true, false}, {"PORT", false, false}, {"RUNTIME_ROOT", false, true}, {"RUNTIME_ROOT", true, true}, {"CONFIG_TYPE", true, true},
	} {
		if got := environment.Start(lookup(map[string]string{test.variable: "x"}), test.file); got != test.want {
			t.Errorf("%s, with a file %t: got %t", test.variable, test.file, got)
		}
	}
}

// The page names each variable, in the list of what becomes of it.
func TestPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/how-to/drop-in.md")
	if err != nil {
		t.Fatal(err)
	}
	var listed [3][]string
	rest := string(page)
	for i, title := range []string{"\n### Honoured\n", "\n### Accepted\n", "\n### Without effect\n"} {
		_, after, ok := strings.Cut(rest, title)
		if !ok {
			t.Fatalf("the page has no section %s", title)
		}
		section, _, _ := strings.Cut(after, "\n##")
		for _, m := range regexp.MustCompile("`([A-Z][A-Z_]+)`").FindAllStringSubmatch(section, -1) {
			listed[i] = append(listed[i], m[1])
		}
		slices.Sort(listed[i])
		listed[i] = slices.Compact(listed[i])
		rest = after
	}
	honoured, accepted, ignored := environment.Names()
	for i, names := range [][]string{honoured, accepted, ignored} {
		if diff := cmp.Diff(names, listed[i]); diff != "" {
			t.Errorf("section %d (-program +page):\n%s", i+1, diff)
		}
	}
}

// The arguments of limitador win over its variables, and those over its defaults.
func TestLimitador(t *testing.T) {
	t.Parallel()
	of := func(l environment.Limitador, variables map[string]string) (*environment.Settings, config.Config) {
		t.Helper()
		s, err := l.Settings(lookup(variables))
		if err != nil {
			t.Fatal(err)
		}
		c := config.Config{Headers: config.Headers{RetryAfter: true}, Store: config.Store{Type: config.StoreEmbedded}}
		s.Defaults(&c)
		return s, c
	}
	s, c := of(environment.Limitador{File: "limits.yaml", Storage: []string{"memory"}}, nil)
	if s.Rules != "limits.yaml" || c.Server.GRPC.Address != "0.0.0.0:8081" || c.Server.HTTP.Address != "0.0.0.0:8080" || c.Headers != (config.Headers{}) || !c.Server.HTTP.Charges || c.Log.Level != 4 {
		t.Errorf("defaults: %+v %+v", s, c)
	}
	s, c = of(environment.Limitador{RLSPort: "1", Headers: "DRAFT_VERSION_03", Traces: "rpc://jaeger:4317", Verbose: 2, Storage: []string{"disk", "/data"}}, map[string]string{
		"LIMITS_FILE": "of-variable.yaml", "ENVOY_RLS_PORT": "2", "HTTP_API_HOST": "::1", "HTTP_API_PORT": "3", "RUST_LOG": "error",
	})
	if s.Rules != "of-variable.yaml" || c.Server.GRPC.Address != "0.0.0.0:1" || c.Server.HTTP.Address != "[::1]:3" || !c.Headers.XRateLimit || c.Tracing.Endpoint != "http://jaeger:4317" || c.Log.Level != 0 || c.Store.Embedded.Data != "/data" {
		t.Errorf("arguments: %+v %+v", s, c)
	}
	if s, c = of(environment.Limitador{File: "f", Storage: []string{"redis", "redis://:secret@r"}}, map[string]string{"RATELIMIT_TABLE": "t"}); s.Other != "redis" || c.Store.DynamoDB.Table != "t" || c.Store.Type != config.StoreDynamoDB {
		t.Errorf("redis: %+v %+v", s, c.Store)
	}
	if s, c = of(environment.Limitador{File: "f", Storage: []string{"redis_cached"}}, map[string]string{"REDIS_URL": "redis://:secret@r:7000/2"}); s.Other != "redis_cached" || c.Store.Type != config.StoreValkey || c.Store.Valkey.Addresses[0] != "r:7000" || c.Store.Valkey.Password != "secret" || c.Store.Valkey.Database != 2 {
		t.Errorf("redis: %+v %+v", s, c.Store)
	}
	if _, err := (&environment.Limitador{File: "f", Storage: []string{"redis"}}).Settings(lookup(nil)); err == nil || !strings.Contains(err.Error(), "the URL of redis must be host:port, or a URL") {
		t.Errorf("redis without a URL: %v", err)
	}
	for text, want := range map[string]slog.Level{"limitador_server=debug": -4, "limitador=debug,info": 0, "off": 8, "trace": -4, "limitador": -4, "limitador_server::http, warn": 4} {
		if _, c = of(environment.Limitador{File: "f"}, map[string]string{"RUST_LOG": text}); c.Log.Level != want {
			t.Errorf("RUST_LOG=%s: got %v", text, c.Log.Level)
		}
	}
	_, err := (&environment.Limitador{Headers: "draft", RLSPort: "x", Traces: "jaeger", Storage: []string{"rocks"}}).Settings(lookup(map[string]string{"RUST_LOG": "loud"}))
	for _, want := range []string{"the file of limits is missing", "--rate-limit-headers", "port", "--tracing-endpoint", `"rocks" is no storage`, "RUST_LOG"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
