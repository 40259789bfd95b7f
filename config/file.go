package config

import (
	"encoding/json"
	"time"

	"github.com/ratelimit/ratelimit/config/yamlcfg"
	"github.com/ratelimit/ratelimit/pkg/descriptor"
)

// file is the configuration itself, before its includes are added to it.
type file struct {
	cfg      *Config
	includes []include
	plans    []yamlcfg.Entry[level]
	sets     []yamlcfg.Entry[descriptor.MatchSpec]
	prices   []yamlcfg.Entry[price]
	pricing  map[string]bool // limits that a rule consumes by price, which may be 0
	partial  bool            // its includes are not read
	limits   levels
	sealing  []sealingKey // of reservations
	webhook  webhook
	domains  []domain
	openAI   string // the path of openai under headers, "" = none
}

// schema is the whole configuration.
func (f *file) schema() yamlcfg.Schema {
	c := f.cfg
	return keys(
		key("server", "listeners", c.Server.schema()),
		key("store", "home of the buckets", c.Store.schema()),
		key("decision", "how decisions are made", keys(
			key("timeout", "longest wait for the store; then the decision is late. Keep it below the gateway's timeout, 20 ms in Envoy", yamlcfg.Duration(&c.Decision.Timeout, time.Millisecond, time.Minute)),
			key("on_unavailable", "answer while the store is unavailable; `local` decides in memory", policy(&c.Static.OnUnavailable)),
			key("local", "settings of `local`", local(&c.Static.LocalShare)),
		)),
		key("headers", "[headers](headers.md) of an answer, in any order; `[]` = none", headers(&c.Headers, &f.openAI)),
		key("envoyproxy", "in the main configuration: settings for [files of envoyproxy/ratelimit](#files-of-envoyproxyratelimit)", c.Envoyproxy.schema()),
		key("xds", "[control plane](#rules-from-a-control-plane) that hands out rules", c.XDS.schema()),
		key("mirror", "another service that is asked too, to [compare its answers](how-to/drop-in.md#switch)", c.Mirror.schema()),
		key("include", "[more files](#several-files) with domains", yamlcfg.List[include]{Out: &f.includes, Item: (*include).schema}),
		key("plans", "limits by names for rules, `limits: paid` or `limits: \"{plan}\"`", yamlcfg.Dict[level]{Out: &f.plans, What: "a plan", Item: (*level).plan}),
		key("limits", "limits by level", f.limits.schema()),
		key("sets", "[values](#how-a-call-is-decided) of `match` by name, for `user: {set: blocked}`", yamlcfg.Dict[descriptor.MatchSpec]{Out: &f.sets, What: "a set", Item: set}),
		key("unmatched", "for descriptors without a rule and unknown domains", yamlcfg.OneOf(&c.DenyUnknown, yamlcfg.As("allow", false), yamlcfg.As("deny", true))),
		key("prices", "[prices](#prices) of tokens by model, for amounts that are `price`", yamlcfg.Dict[price]{Out: &f.prices, What: "a model", Item: (*price).schema}),
		key("body", "[body of denials](#bodies-of-denials)", body(&c.Body)),
		key("domains", "domains", domains(&f.domains)),
		key("cache", "resolved limits of `dynamodb` and `valkey`", keys(key("ttl", "how long they stay; changes come sooner", yamlcfg.Duration(&c.Cache.TTL, time.Second, day)))),
		key("audit", "changes by operators; a store in memory keeps none", keys(key("retention", "how long an event is kept; in a table a change holds for new events", yamlcfg.Duration(&c.Audit.Retention, day, 3650*day)))),
		key("reservation", "[ids of reservations](llm-gateways.md#reserve-and-settle-by-id)", reservation(&c.Reservation.TTL, &f.sealing)),
		key("budgets", "events of [budgets](#budgets)", budgets(&f.webhook)),
		key("drain", "answers after SIGTERM while not ready; then calls in flight end within 5s. Ctrl-C skips it", yamlcfg.Duration(&c.Drain, 0, time.Hour)),
		key("log", "the log", c.Log.schema()),
	)
}

// JSONSchema returns the JSON Schema (draft 2020-12) of the configuration, for editors. It is made
// of the tables that read the file.
func JSONSchema() ([]byte, error) {
	root := (&file{cfg: defaults()}).schema().Shape()
	root.Dialect, root.Title = "https://json-schema.org/draft/2020-12/schema", "ratelimit.yaml"
	root.Walk("", func(key string, s *yamlcfg.Shape) { s.Title = key })
	return json.MarshalIndent(root, "", " ")
}

// mainSchema is the schema of the configuration itself. A file without keys is no configuration. It
// may be any file that was named by mistake, so problems repeat nothing of it.
type mainSchema struct{ yamlcfg.Schema }

func (s mainSchema) Decode(n yamlcfg.Node) {
	if !n.IsMapping() && !n.Empty() {
		n.Hide()
	}
	switch {
	case isLimitFile(n):
		n.Failf("is a list, as the limits of a limitador file, not a configuration: %s", includeHint)
	case n.Has("descriptors"):
		n.Failf("is a file of envoyproxy/ratelimit, not a configuration: %s", includeHint)
	case n.Has("domain") && n.Has("rules") && !n.Has("domains"):
		n.Failf("is the file of one domain, not a configuration: %s", includeHint)
	default:
		s.Schema.Decode(n)
	}
}

const includeHint = "name it with --rules, or in a configuration under include"
