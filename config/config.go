package config

import (
	"log/slog"
	"time"

	"github.com/ratelimit/ratelimit/config/yamlcfg"
	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/rls"
	"github.com/ratelimit/ratelimit/pkg/valkey"
)

// Config is a configuration that can be used. It comes from [Load] or [Parse].
type Config struct {
	Server     Server
	Store      Store
	Decision   Decision
	Headers    Headers
	Envoyproxy Envoyproxy
	XDS        XDS
	Mirror     Mirror
	Cache      Cache
	Audit      Audit

	Reservation Reservation
	Budgets     Budgets

	Tracing Tracing // no key of the file sets it

	Drain time.Duration // how long to answer on after SIGTERM while not ready, 0 to 1h; default 10s
	Log   Log

	DenyUnknown bool              // denies calls for domains that no file has; default false
	Static      limiter.Static    // limits and entities, and the policies for when the store does not answer
	Rules       *descriptor.Rules // of all domains, compiled
	Body        descriptor.Body   // of denials, where a domain has no other

	Warnings  yamlcfg.Problems // legal settings that are probably mistakes, sorted
	Restart   yamlcfg.Problems // those of Warnings, from [Watch], about settings that take effect at the next start
	Limitador bool             // a file of limitador is among Files
	Note      string           // what the limits admit, of the first one that may surprise; "" = none does
	Files     []string         // every file read, in order; the configuration itself first, if it is one
	Hash      string           // SHA-256 over the names and contents of Files, in hexadecimal

	// The state of the files behind the Config. Later changes of the Config do not change it.
	settings []setting
	seen     seen
	specs    []descriptor.DomainSpec
	ruleless map[string]bool // domains without a list of rules; a file that was cut off has such a domain
}

// setting is a part of a Config that takes effect only when the program starts.
type setting struct {
	path  string
	value any
	at    yamlcfg.Place
}

// startSettings returns the settings that take effect only when the program starts, without their
// places.
func (c *Config) startSettings() []setting {
	return []setting{
		{path: "server.grpc", value: c.Server.GRPC},
		{path: "server.http", value: c.Server.HTTP},
		{path: "server.metrics", value: c.Server.Metrics},
		{path: "server.statsd", value: c.Server.Statsd},
		{path: "server.debug", value: c.Server.Debug},
		{path: "server.admin.address", value: c.Server.Admin.Address},
		{path: "server.admin.tls", value: c.Server.Admin.TLS},
		{path: "store", value: c.Store},
		{path: "xds", value: c.XDS},
		{path: "mirror", value: c.Mirror},
		{path: "decision.timeout", value: c.Decision.Timeout},
		{path: "cache", value: c.Cache},
		{path: "audit", value: c.Audit},
		{path: "budgets.webhook", value: c.Budgets.Webhook},
		{path: "drain", value: c.Drain},
		{path: "log.level", value: c.Log.Level},
		{path: "log.format", value: c.Log.Format},
	}
}

// remember notes the settings of startSettings as the files have them, each with its place.
func (c *Config) remember(r *yamlcfg.Report) {
	for _, s := range c.startSettings() {
		at, ok := r.Place(s.path)
		if !ok { // it is the default
			at = yamlcfg.Place{File: r.Find("").File, Path: s.path}
		}
		s.at = at
		c.settings = append(c.settings, s)
	}
}

// Decision is how decisions are made. The answers for when the store is unavailable are in
// Config.Static.
type Decision struct {
	Timeout time.Duration // for the store to answer, 1ms to 1m; default 15ms
}

// Tracing is the part about traces of a start with the settings of another service, beside the variables of
// OpenTelemetry. The zero value changes nothing.
type Tracing struct {
	Off      bool   // there are none, whatever those variables say
	On       bool   // there are some, at the collector of those variables or the usual one
	Endpoint string // URL of the collector; "" = that of those variables
	Protocol string // grpc or http/protobuf; "" = that of those variables, or grpc
	// Service, Namespace and Instance are service.name, service.namespace and service.instance.id; "" = those of the
	// variables.
	Service, Namespace, Instance string
	Share                        string // of the calls that are sampled, "0" to "1"; "" = that of the variables
}

// Cache is the cache of resolved limits.
type Cache struct {
	TTL time.Duration // 1s to 24h; default 60s
}

// Audit is the record of changes by operators.
type Audit struct {
	Retention time.Duration // how long an event stays, 24h to 87600h; default limiter.AuditRetention
}

// Log is the settings of the log.
type Log struct {
	Level  slog.Level // default slog.LevelInfo
	Format LogFormat  // default LogText

	Denials LogDenials
}

// LogDenials says which denials are logged.
type LogDenials struct {
	PerSecond int  // the most lines a second, 0 to 1,000; default 0: none is logged
	Whole     bool // entities are written whole, and not masked; default false
}

// LogFormat is how log lines are written.
type LogFormat string

// The formats of log lines.
const (
	LogText LogFormat = "text"
	LogJSON LogFormat = "json"
)

func (l *Log) schema() yamlcfg.Schema {
	return keys(
		key("level", "least level", yamlcfg.OneOf(&l.Level, yamlcfg.As("info", slog.LevelInfo), yamlcfg.As("debug", slog.LevelDebug),
			yamlcfg.As("warn", slog.LevelWarn), yamlcfg.As("error", slog.LevelError))),
		key("format", "form of a line", yamlcfg.Enum(&l.Format, LogText, LogJSON)),
		key("denials", "[the log of denials](#the-log-of-denials)", keys(
			key("per_second", "most lines a second; 0 = none", yamlcfg.Integer(&l.Denials.PerSecond, 0, 1000)),
			key("entity", "how entities are logged", yamlcfg.OneOf(&l.Denials.Whole, yamlcfg.As("masked", false), yamlcfg.As("whole", true))),
		)),
	)
}

// defaults returns the configuration without a file.
func defaults() *Config {
	return &Config{
		Server: Server{
			GRPC: GRPC{Address: "0.0.0.0:8081", MaxConnectionAge: 30 * time.Minute, MaxInFlight: 65_536},
			HTTP: HTTP{Address: "127.0.0.1:8080"}, Metrics: Metrics{Path: "/metrics"}, Statsd: Statsd{Protocol: StatsdTCP, Interval: 10 * time.Second},
			Admin: Admin{Proxy: AdminProxy{Header: "X-Auth-Request-Email", GroupsHeader: "X-Auth-Request-Groups"}},
		},
		Store: Store{
			Type:     StoreEmbedded,
			DynamoDB: DynamoDB{Table: "ratelimit", MaxClockOffset: dynamo.DefaultMaxClockOffset},
			Valkey:   Valkey{Table: valkey.DefaultName, OnLoss: LossRefuse, Usage: true, Durability: DurableServer},
		},
		XDS:         XDS{Node: "ratelimit", Retry: time.Second, MaxRetry: time.Minute, MaxMessage: 64 << 20},
		Mirror:      Mirror{Timeout: time.Second},
		Decision:    Decision{Timeout: 15 * time.Millisecond},
		Envoyproxy:  Envoyproxy{FileOptions: rls.FileOptions{Near: 800}},
		Headers:     Headers{RetryAfter: true, XRateLimit: true},
		Cache:       Cache{TTL: time.Minute},
		Audit:       Audit{Retention: limiter.AuditRetention},
		Reservation: Reservation{TTL: 10 * time.Minute},
		Drain:       10 * time.Second,
		Log:         Log{Level: slog.LevelInfo, Format: LogText},
		Static:      limiter.Static{OnUnavailable: limiter.Allow, LocalShare: 1000},
	}
}
