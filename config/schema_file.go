package config

import (
	"log/slog"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// file is the configuration itself, before its includes are added to it.
type file struct {
	cfg         *Config
	includes    []include
	plans       []entry[*limiter.Limits]
	limits      limitsSection
	reservation reservation
	budgets     budgets
	domains     []domain
	openAI      string // the path of openai under headers, "" = none
}

// schema is the whole configuration.
func (f *file) schema() schema {
	c := f.cfg
	return object{keys: []key{
		{"server", object{keys: []key{{"grpc", c.Server.GRPC.schema()}, {"http", c.Server.HTTP.schema()}, {"admin", adminSchema{&c.Server.Admin}}}}},
		{"store", c.Store.schema()},
		{"decision", object{keys: []key{
			{"timeout", duration(&c.Decision.Timeout, time.Millisecond, time.Minute)},
			{"on_unavailable", policy(&c.Static.OnUnavailable)},
			{"local", local(&c.Static.LocalShare)},
		}}},
		{"headers", headersSchema{&c.Headers, &f.openAI}},
		{"include", list[include]{out: &f.includes, item: func(i *include) schema { return i.schema() }}},
		{"plans", dict[*limiter.Limits]{out: &f.plans, what: "a plan", item: limits}},
		{"limits", f.limits.schema()},
		{"unmatched", unmatched(&c.DenyUnknown)},
		{"domains", domains(&f.domains)},
		{"cache", object{keys: []key{{"ttl", duration(&c.Cache.TTL, time.Second, day)}}}},
		{"audit", object{keys: []key{{"retention", duration(&c.Audit.Retention, day, 3650*day)}}}},
		{"reservation", f.reservation.schema()},
		{"budgets", f.budgets.schema()},
		{"drain", duration(&c.Drain, 0, time.Hour)},
		{"log", c.Log.schema()},
	}}
}

func (g *GRPC) schema() schema {
	return object{keys: []key{
		{"address", address(&g.Address)},
		{"tls", confidential{tlsSchema{&g.TLS}}},
		{"max_connection_age", duration(&g.MaxConnectionAge, 0, day)},
		{"max_connections", count(&g.MaxConnections, 1, 1_000_000)},
		{"max_in_flight", count(&g.MaxInFlight, 1, 1_000_000)},
	}}
}

func (h *HTTP) schema() schema {
	return object{keys: []key{
		{"address", address(&h.Address)},
		{"tls", confidential{tlsSchema{&h.TLS}}},
		{"pprof", boolean(&h.PProf)},
		{"hosts", names(&h.Hosts)},
		{"refunds", boolean(&h.Refunds)},
		{"charges", boolean(&h.Charges)},
	}}
}

// tlsSchema is a certificate and its key, or neither.
type tlsSchema struct{ out *TLS }

func (s tlsSchema) decode(d *decoder, v value) {
	s.object().decode(d, v)
	switch t := s.out; {
	case isNull(v.node), t.Cert != "" && t.Key != "":
	case t.Cert == "" && t.Key == "":
		d.failf(v, "needs cert and key; without TLS leave it out")
	case t.Cert == "":
		d.failf(v, "needs cert too, the certificate that belongs to key")
	default:
		d.failf(v, "needs key too, the private key that belongs to cert")
	}
}

func (s tlsSchema) object() object {
	return object{title: "tls", keys: []key{
		{"cert", name(&s.out.Cert)}, {"key", name(&s.out.Key)}, {"client_ca", name(&s.out.ClientCA)},
	}}
}

func (s tlsSchema) walk(path string, visit func(string)) { s.object().walk(path, visit) }

func (s *Store) schema() schema {
	return object{keys: []key{
		{"type", oneOf(&s.Type, word[StoreType]{"embedded", StoreEmbedded}, word[StoreType]{"dynamodb", StoreDynamoDB})},
		{"embedded", object{keys: []key{
			{"data", text(&s.Embedded.Data)},
			{"max_buckets", count(&s.Embedded.MaxBuckets, 1, 1_000_000_000)},
		}}},
		{"dynamodb", dynamoDBSchema{&s.DynamoDB}},
	}}
}

func count(out *int, least, most int64) schema {
	return scalar(func(d *decoder, v value) {
		n := int64(*out)
		integer(&n, least, most).decode(d, v)
		*out = int(n)
	})
}

func (l *Log) schema() schema {
	return object{keys: []key{
		{"level", oneOf(&l.Level, word[slog.Level]{"info", slog.LevelInfo}, word[slog.Level]{"debug", slog.LevelDebug},
			word[slog.Level]{"warn", slog.LevelWarn}, word[slog.Level]{"error", slog.LevelError})},
		{"format", oneOf(&l.Format, word[LogFormat]{"text", LogText}, word[LogFormat]{"json", LogJSON})},
		{"denials", object{keys: []key{
			{"per_second", count(&l.Denials.PerSecond, 0, 1000)},
			{"entity", oneOf(&l.Denials.Whole, word[bool]{"masked", false}, word[bool]{"whole", true})},
		}}},
	}}
}

// local says how to decide while the store is unavailable.
func local(out *int64) schema { return object{keys: []key{{"share", share(out)}}} }

// unmatched says whether a descriptor that no rule matches is allowed.
func unmatched(deny *bool) schema {
	return oneOf(deny, word[bool]{"allow", false}, word[bool]{"deny", true})
}
