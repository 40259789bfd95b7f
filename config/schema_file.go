package config

import (
	"log/slog"
	"time"

	"github.com/ratelimit/ratelimit/config/yamlcfg"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// file is the configuration itself, before its includes are added to it.
type file struct {
	cfg         *Config
	includes    []include
	plans       []yamlcfg.Entry[*limiter.Limits]
	limits      limitsSection
	reservation reservation
	budgets     budgets
	domains     []domain
	openAI      string // the path of openai under headers, "" = none
}

// schema is the whole configuration.
func (f *file) schema() yamlcfg.Schema {
	c := f.cfg
	return yamlcfg.Object{Keys: []yamlcfg.Key{
		key("server", "the listeners", yamlcfg.Object{Keys: []yamlcfg.Key{key("grpc", "the Rate Limit Service", c.Server.GRPC.schema()), key("http", "`/json`, `/v1/explain`, `/metrics`, `/healthz`, `/readyz`: [The HTTP side](#the-http-side)", c.Server.HTTP.schema()), key("admin", "backup, restore, changes of state: [Administration](#administration)", c.Server.Admin.schema())}}),
		key("store", "the home of the buckets", c.Store.schema()),
		key("decision", "how decisions are made", yamlcfg.Object{Keys: []yamlcfg.Key{
			key("timeout", "how long a decision waits for the store, then it is late. Keep it below the gateway's timeout, 20 ms in Envoy", yamlcfg.Duration(&c.Decision.Timeout, time.Millisecond, time.Minute)),
			key("on_unavailable", "the answer while the store is unavailable; `local` decides in memory", policy(&c.Static.OnUnavailable)),
			key("local", "settings of `local`", local(&c.Static.LocalShare)),
		}}),
		key("headers", "[headers](headers.md) of an answer, in any order; `[]` = none", headers(&c.Headers, &f.openAI)),
		key("include", "[more files](#several-files) with domains", yamlcfg.List[include]{Out: &f.includes, Item: func(i *include) yamlcfg.Schema { return i.schema() }}),
		key("plans", "limits by names for rules, `limits: paid` or `limits: \"{plan}\"`", yamlcfg.Dict[*limiter.Limits]{Out: &f.plans, What: "a plan", Item: limits}),
		key("limits", "limits by level", f.limits.schema()),
		key("unmatched", "for descriptors without a rule and unknown domains", unmatched(&c.DenyUnknown)),
		key("domains", "the domains", domains(&f.domains)),
		key("cache", "resolved limits of `dynamodb`", yamlcfg.Object{Keys: []yamlcfg.Key{key("ttl", "how long they are cached; changes come sooner", yamlcfg.Duration(&c.Cache.TTL, time.Second, day))}}),
		key("audit", "changes by operators; a store in memory keeps none", yamlcfg.Object{Keys: []yamlcfg.Key{key("retention", "how long an event is kept. In a table it holds for new events, by their `ttl`", yamlcfg.Duration(&c.Audit.Retention, day, 3650*day))}}),
		key("reservation", "ids of reservations: [LLM gateways](llm-gateways.md)", f.reservation.schema()),
		key("budgets", "events of [budgets](#budgets), which stand on their limits", f.budgets.schema()),
		key("drain", "answers after SIGTERM while not ready; then calls in flight end within 5s. Ctrl-C skips it", yamlcfg.Duration(&c.Drain, 0, time.Hour)),
		key("log", "the log", c.Log.schema()),
	}}
}

// mainSchema is the schema of the configuration itself. A file without keys is no configuration. It
// may be any file that was named by mistake, so problems repeat nothing of it.
type mainSchema struct{ yamlcfg.Schema }

func (s mainSchema) Decode(d *yamlcfg.Decoder, v yamlcfg.Value) {
	if !v.IsMapping() && !v.Null() {
		d.Hide(v)
	}
	switch {
	case v.Has("descriptors"):
		d.Failf(v, "is a file of envoyproxy/ratelimit, not a configuration: %s", includeHint)
	case v.Has("domain") && v.Has("rules") && !v.Has("domains"):
		d.Failf(v, "is the file of one domain, not a configuration: %s", includeHint)
	default:
		s.Schema.Decode(d, v)
	}
}

const includeHint = "name it with --rules, or in a configuration under include"

func (g *GRPC) schema() yamlcfg.Schema {
	return yamlcfg.Object{Keys: []yamlcfg.Key{
		key("address", "without a host all interfaces; port 0 is a free one", yamlcfg.Address(&g.Address)),
		key("tls", "[TLS](#tls)", yamlcfg.Confidential{Schema: g.TLS.schema()}),
		key("max_connection_age", "ends connections, so that they spread over replicas; calls in flight are finished; `0s` = never", yamlcfg.Duration(&g.MaxConnectionAge, 0, day)),
		key("max_connections", "[Bounds](#bounds)", yamlcfg.Count(&g.MaxConnections, 1, 1_000_000)),
		key("max_in_flight", "complete calls at once; `decision.on_unavailable` answers further ones", yamlcfg.Count(&g.MaxInFlight, 1, 1_000_000)),
	}}
}

func (h *HTTP) schema() yamlcfg.Schema {
	return yamlcfg.Object{Keys: []yamlcfg.Key{
		key("address", "as of gRPC", yamlcfg.Address(&h.Address)),
		key("tls", "[TLS](#tls)", yamlcfg.Confidential{Schema: h.TLS.schema()}),
		key("pprof", "profiles under `/debug/pprof`", yamlcfg.Bool(&h.PProf)),
		key("hosts", "host names of requests, beside `localhost` and IP addresses; `/healthz` and `/readyz` take any", yamlcfg.Names(&h.Hosts)),
		key("refunds", "`/json` refunds tokens, by `isNegativeHits`", yamlcfg.Bool(&h.Refunds)),
		key("charges", "`/json` charges tokens, by rules with `overdraw`", yamlcfg.Bool(&h.Charges)),
	}}
}

// schema is a certificate and its key, or neither.
func (t *TLS) schema() yamlcfg.Schema {
	return yamlcfg.Object{Title: "tls", Needs: []string{"cert", "key"}, Keys: []yamlcfg.Key{
		key("cert", "the certificate and its chain", yamlcfg.Name(&t.Cert)), key("key", "its private key", yamlcfg.Name(&t.Key)), key("client_ca", "authorities; clients must show a certificate of one", yamlcfg.Name(&t.ClientCA)),
	}}.Then(func(d *yamlcfg.Decoder, v yamlcfg.Value, _ bool) {
		switch {
		case v.Null(), t.Cert != "" && t.Key != "":
		case t.Cert == "" && t.Key == "":
			d.Failf(v, "needs cert and key; without TLS leave it out")
		case t.Cert == "":
			d.Failf(v, "needs cert too, the certificate that belongs to key")
		default:
			d.Failf(v, "needs key too, the private key that belongs to cert")
		}
	})
}

func (s *Store) schema() yamlcfg.Schema {
	return yamlcfg.Object{Keys: []yamlcfg.Key{
		key("type", "in the program, or [a table of a fleet](#a-fleet-on-dynamodb)", yamlcfg.OneOf(&s.Type, yamlcfg.Word[StoreType]{Text: "embedded", Value: StoreEmbedded}, yamlcfg.Word[StoreType]{Text: "dynamodb", Value: StoreDynamoDB})),
		key("embedded", "the embedded store", yamlcfg.Object{Keys: []yamlcfg.Key{
			key("data", "[directory](#a-data-directory) for buckets, stored limits, entities, audit and usage, relative to the working directory; `\"\"` = memory only", yamlcfg.Text(&s.Embedded.Data)),
			key("max_buckets", "a full bucket counts as none; beyond it new keys [share buckets](#memory). With `dynamodb`, of those under `local`", yamlcfg.Count(&s.Embedded.MaxBuckets, 1, 1_000_000_000)),
		}}),
		key("dynamodb", "the DynamoDB store", s.DynamoDB.schema()),
	}}
}

func (l *Log) schema() yamlcfg.Schema {
	return yamlcfg.Object{Keys: []yamlcfg.Key{
		key("level", "least level", yamlcfg.OneOf(&l.Level, yamlcfg.Word[slog.Level]{Text: "info", Value: slog.LevelInfo}, yamlcfg.Word[slog.Level]{Text: "debug", Value: slog.LevelDebug},
			yamlcfg.Word[slog.Level]{Text: "warn", Value: slog.LevelWarn}, yamlcfg.Word[slog.Level]{Text: "error", Value: slog.LevelError})),
		key("format", "form of a line", yamlcfg.OneOf(&l.Format, yamlcfg.Word[LogFormat]{Text: "text", Value: LogText}, yamlcfg.Word[LogFormat]{Text: "json", Value: LogJSON})),
		key("denials", "[the log of denials](#the-log-of-denials)", yamlcfg.Object{Keys: []yamlcfg.Key{
			key("per_second", "most lines a second; 0 = none", yamlcfg.Count(&l.Denials.PerSecond, 0, 1000)),
			key("entity", "how entities are logged", yamlcfg.OneOf(&l.Denials.Whole, yamlcfg.Word[bool]{Text: "masked", Value: false}, yamlcfg.Word[bool]{Text: "whole", Value: true})),
		}}),
	}}
}

// local says how to decide while the store is unavailable.
func local(out *int64) yamlcfg.Schema {
	return yamlcfg.Object{Keys: []yamlcfg.Key{key("share", "this process's share of each limit: 0.25 for four replicas", share(out))}}
}

// unmatched says whether a descriptor that no rule matches is allowed.
func unmatched(deny *bool) yamlcfg.Schema {
	return yamlcfg.OneOf(deny, yamlcfg.Word[bool]{Text: "allow", Value: false}, yamlcfg.Word[bool]{Text: "deny", Value: true})
}

func policy(out *limiter.Policy) yamlcfg.Schema {
	return yamlcfg.OneOf(out, yamlcfg.Word[limiter.Policy]{Text: "allow", Value: limiter.Allow}, yamlcfg.Word[limiter.Policy]{Text: "deny", Value: limiter.Deny},
		yamlcfg.Word[limiter.Policy]{Text: "local", Value: limiter.Local})
}

// share is a part of a limit, 0.001 to 1.
func share(out *int64) yamlcfg.Schema { return yamlcfg.Thousandths(out, 1, 1000) }
