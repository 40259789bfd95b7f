package config_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// settings are the fields of a Config apart from rules, limits and its origin.
func settings(c *config.Config) config.Config {
	return config.Config{
		Server: c.Server, Store: c.Store, Decision: c.Decision, Headers: c.Headers, Cache: c.Cache, Audit: c.Audit,
		Drain: c.Drain, Log: c.Log, DenyUnknown: c.DenyUnknown,
	}
}

func defaults() config.Config {
	return config.Config{
		Server: config.Server{
			GRPC: config.GRPC{Address: "0.0.0.0:8081", MaxConnectionAge: 30 * time.Minute, MaxInFlight: 65_536},
			HTTP: config.HTTP{Address: "127.0.0.1:8080"}, Metrics: config.Metrics{Path: "/metrics"}, Statsd: config.Statsd{Protocol: config.StatsdTCP, Interval: 10 * time.Second},
			Admin: config.Admin{Proxy: config.AdminProxy{Header: "X-Auth-Request-Email", GroupsHeader: "X-Auth-Request-Groups"}},
		},
		Store: config.Store{
			Type:     config.StoreEmbedded,
			DynamoDB: config.DynamoDB{Table: "ratelimit", MaxClockOffset: 5 * time.Minute},
			Valkey:   config.Valkey{Table: "ratelimit", OnLoss: config.LossRefuse, Usage: true, Durability: config.DurableServer},
		},
		Decision: config.Decision{Timeout: 15 * time.Millisecond},
		Headers:  config.Headers{RetryAfter: true, XRateLimit: true},
		Cache:    config.Cache{TTL: time.Minute},
		Audit:    config.Audit{Retention: 90 * 24 * time.Hour},
		Drain:    10 * time.Second,
		Log:      config.Log{Level: slog.LevelInfo, Format: config.LogText},
	}
}

// compare compares the exported state of configurations.
func compare() cmp.Option { return cmpopts.IgnoreUnexported(config.Config{}) }

// parse parses a configuration that must be valid.
func parse(t *testing.T, data string) *config.Config {
	t.Helper()
	c, err := config.Parse("test.yaml", []byte(data), nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestShippedConfiguration(t *testing.T) {
	c, err := config.Load("", config.Options{Demo: true})
	if err != nil {
		t.Fatal(err)
	}
	wantSettings := defaults()
	wantSettings.DenyUnknown = true // so that a mistake in the gateway's configuration is seen
	if diff := cmp.Diff(wantSettings, settings(c), compare()); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	limits := func(l ...limiter.Limit) *limiter.Limits {
		s, err := limiter.NewLimits(l...)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	want := limiter.Static{
		System: limits(limiter.PerMinute("rpm", 600), limiter.PerMinute("tpm", 100_000)),
		Resources: map[string]*limiter.Limits{
			"gpt-4": limits(limiter.PerMinute("rpm", 60), limiter.PerMinute("tpm", 40_000).WithBurst(60_000)),
		},
		Entities: map[string]limiter.StaticEntity{
			"org/acme": {Limits: map[string]*limiter.Limits{
				limiter.DefaultResource: limits(limiter.PerMinute("tpm", 2_000_000), limiter.Unlimited("rpm")),
				"gpt-4":                 limits(limiter.PerMinute("rpm", 6000), limiter.PerMinute("tpm", 400_000)),
			}},
			"project/search": {Limits: map[string]*limiter.Limits{limiter.DefaultResource: limits(limiter.PerMinute("tpm", 500_000), limiter.Unlimited("rpm"))}},
			"key/k-123":      {Parent: "org/acme", Cascade: true, Limits: map[string]*limiter.Limits{}},
		},
		Plans: map[string]*limiter.Limits{
			"free": limits(limiter.PerMinute("rpm", 20), limiter.PerMinute("tpm", 10_000)),
			"paid": limits(limiter.PerMinute("rpm", 600), limiter.PerMinute("tpm", 400_000).WithBurst(600_000)),
		},
		OnUnavailable: limiter.Allow, LocalShare: 1000,
	}
	if diff := cmp.Diff(want, c.Static, cmp.AllowUnexported(limiter.Limits{})); diff != "" {
		t.Errorf("limits (-want +got):\n%s", diff)
	}
	if len(c.Warnings) > 0 {
		t.Errorf("the shipped configuration has warnings: %v", c.Warnings)
	}
	file, err := os.ReadFile("ratelimit.yaml")
	if err != nil || string(file) != string(config.Shipped()) {
		t.Errorf("the shipped configuration is not ratelimit.yaml: %v", err)
	}
}

func TestDefaults(t *testing.T) {
	for name, data := range map[string]string{
		"empty":      "",
		"BOM":        "\ufeff",
		"comment":    "# nothing\n",
		"null":       "---\n",
		"no values":  "server:\nstore:\ndecision:\nheaders:\ninclude:\nplans:\nlimits:\ndomains:\ncache:\nlog:\n",
		"no values2": "server: {grpc: , http: {tls: }}\nlimits: {system: , resources: , entities: {a: }}\n",
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(defaults(), settings(parse(t, data)), compare()); diff != "" {
				t.Errorf("settings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEverySetting(t *testing.T) {
	got := parse(t, "\ufeff"+`
server:
  grpc: {address: ":1", tls: {cert: c, key: k, client_ca: ca}, max_connection_age: 0s, max_connections: 5, max_in_flight: 7}
  http: {address: "[::1]:0", tls: {cert: c2, key: k2}, pprof: true}
  statsd: {address: "s:1", protocol: udp, interval: 1s, tags: {a: b}}
  debug: {address: ":6070"}
  admin: {address: "[::1]:9", tls: {cert: c3, key: k3, client_ca: a3}, proxy: {certificate: p.q, header: X-U, groups_header: X-G, role: read, users: {u: operate}, groups: {g: administer}}}
store:
  type: dynamodb
  embedded: {data: /var/lib/ratelimit, max_buckets: 1_000}
  dynamodb: {table: t_1, region: r, endpoint: "http://localhost:8000", create_table: true, max_clock_offset: 1m}
  valkey:
    {addresses: ["a:1", "b:2"], master: m, database: 3, table: t, create: true, on_loss: recreate, durability: replica, usage: false, username: u, password_file: p,
     sentinel_username: su, sentinel_password_file: sp, tls: {ca: a, cert: c, key: k, name: n}}
decision: {timeout: 1s, on_unavailable: local, local: {share: 0.25}}
headers: [x-ratelimit]
unmatched: deny
cache: {ttl: 1h30m}
audit: {retention: 8760h}
drain: 1m
log: {level: debug, format: json}
`)
	want := config.Config{
		Server: config.Server{
			GRPC: config.GRPC{Address: ":1", TLS: config.TLS{Cert: "c", Key: "k", ClientCA: "ca"}, MaxConnections: 5, MaxInFlight: 7},
			HTTP: config.HTTP{Address: "[::1]:0", TLS: config.TLS{Cert: "c2", Key: "k2"}, PProf: true}, Metrics: config.Metrics{Path: "/metrics"}, Statsd: config.Statsd{Address: "s:1", Protocol: config.StatsdUDP, Interval: time.Second, Tags: map[string]string{"a": "b"}}, Debug: config.Debug{Address: ":6070"},
			Admin: config.Admin{Address: "[::1]:9", TLS: config.TLS{Cert: "c3", Key: "k3", ClientCA: "a3"}, Proxy: config.AdminProxy{
				Certificate: "p.q", Header: "X-U", GroupsHeader: "X-G", Role: config.AdminRead, Users: map[string]config.AdminRole{"u": config.AdminOperate}, Groups: map[string]config.AdminRole{"g": config.AdminAdminister},
			}},
		},
		Store: config.Store{
			Type:     config.StoreDynamoDB,
			Embedded: config.Embedded{Data: "/var/lib/ratelimit", MaxBuckets: 1000},
			DynamoDB: config.DynamoDB{Table: "t_1", Region: "r", Endpoint: "http://localhost:8000", CreateTable: true, MaxClockOffset: time.Minute},
			Valkey: config.Valkey{
				Addresses: []string{"a:1", "b:2"}, Master: "m", Database: 3, Table: "t", Create: true, OnLoss: config.LossRecreate, Durability: config.DurableReplica, Username: "u", PasswordFile: "p",
				SentinelUsername: "su", SentinelPasswordFile: "sp", TLS: config.ClientTLS{Enabled: true, CA: "a", Cert: "c", Key: "k", Name: "n"},
			},
		},
		Decision:    config.Decision{Timeout: time.Second},
		Headers:     config.Headers{XRateLimit: true},
		Cache:       config.Cache{TTL: 90 * time.Minute},
		Audit:       config.Audit{Retention: 8760 * time.Hour},
		Drain:       time.Minute,
		Log:         config.Log{Level: slog.LevelDebug, Format: config.LogJSON},
		DenyUnknown: true,
	}
	if diff := cmp.Diff(want, settings(got), compare()); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	if got.Static.OnUnavailable != limiter.Local || got.Static.LocalShare != 250 {
		t.Errorf("policy %v, share %d; want local, 250", got.Static.OnUnavailable, got.Static.LocalShare)
	}
	if none := parse(t, "headers: []\n").Headers; none != (config.Headers{}) {
		t.Errorf("an empty list of headers is %+v", none)
	}
}

// TestRules plans calls with rules in every form that the file has.
func TestRules(t *testing.T) {
	c := parse(t, `
plans: {gold: {rpm: 10/minute}}
domains:
- domain: api
  rules:
  - {name: constant, match: {a: 1}, entity: e, resource: r, consume: {rpm: 2.5, tpm: hits, tph: {hits: 0.125}}, limits: {rpm: 1/second, tpm: 2/second, tph: 3/second}}
  - {name: two, match: {b: "*", "c?": x}, takes: [{entity: "u/{b}", resource: r, consume: {rpm: 1}, reserve: {tpm: 7}}], on_unavailable: deny, local: {share: 0.5}}
  - {name: parents, match: {d: "*", "o?": "*"}, entity: e, resource: r, parent: ["p/{d}", "o/{o}"], limits: gold, consume: {rpm: 1}}
  - {name: charge, match: {f: true}, entity: e, resource: r, parent: up, consume: {rpm: hits}, overdraw: true}
limits: {system: {rpm: 1/minute, tpm: 1/minute}}
`)
	call := descriptor.Call{Domain: "api", Descriptors: []descriptor.Descriptor{
		{Entries: []descriptor.Entry{{Key: "a", Value: "1"}}, Hits: 8, HitsSet: true},
		{Entries: []descriptor.Entry{{Key: "c", Value: "x"}, {Key: "b", Value: "v"}}},
		{Entries: []descriptor.Entry{{Key: "d", Value: "v"}}},
		{Entries: []descriptor.Entry{{Key: "f", Value: "true"}}, Hits: 9, HitsSet: true},
	}}
	var plan descriptor.Plan
	c.Rules.Plan(&call, &plan)
	type take struct {
		Entity, Resource string
		Parents          []string
		Limits           bool
		Consume          []limiter.Consumption
		Mode             limiter.Mode
	}
	got := make([]take, 0, len(plan.Request.Takes))
	for _, tk := range plan.Request.Takes {
		got = append(got, take{tk.Entity, tk.Resource, tk.Parents, tk.Limits != nil, tk.Consume, tk.Mode})
	}
	want := []take{
		{"e", "r", nil, true, []limiter.Consumption{{Limit: "rpm", Amount: 2500}, {Limit: "tpm", Amount: 8000}, {Limit: "tph", Amount: 1000}}, limiter.Consume},
		{"u/v", "r", nil, false, []limiter.Consumption{{Limit: "rpm", Amount: 1000}}, limiter.Consume},
		{"u/v", "r", nil, false, []limiter.Consumption{{Limit: "tpm", Amount: 7000}}, limiter.Consume},
		{"e", "r", []string{"p/v"}, true, []limiter.Consumption{{Limit: "rpm", Amount: 1000}}, limiter.Consume},
		{"e", "r", []string{"up"}, false, []limiter.Consumption{{Limit: "rpm", Amount: 9000}}, limiter.Charge},
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("takes (-want +got):\n%s", diff)
	}
}

func TestUnmatched(t *testing.T) {
	for _, test := range []struct {
		data string
		deny bool
	}{
		{"domains: [{domain: api}]", false},
		{"domains: [{domain: api, unmatched: deny}]", true},
		{"{unmatched: deny, domains: [{domain: api}]}", true},
		{"{domains: [{domain: api, unmatched: allow}], unmatched: deny}", false},
	} {
		var plan descriptor.Plan
		c := parse(t, test.data)
		c.Rules.Plan(&descriptor.Call{Domain: "api", Descriptors: []descriptor.Descriptor{{Entries: []descriptor.Entry{{Key: "k", Value: "v"}}}}}, &plan)
		if got := plan.Outcomes[0].Deny; got != test.deny {
			t.Errorf("%s: an unmatched descriptor is denied: %t, want %t", test.data, got, test.deny)
		}
	}
}

func TestWarnings(t *testing.T) {
	c := parse(t, `
plans: {daily: {rpd: 1000/day}, idle: {other: 5/week}}
limits:
  system: {rpw: 5/week, rpm: 1/minute, unused: 1/day}
  entities:
    lonely: {cascade: true}
    child: {parent: elsewhere, cascade: true}
domains:
- domain: api
  rules:
  - {match: {a: "*"}, entity: "{a}", resource: r, consume: {rpm: 1, rpw: 1, stored: 1}, stored: expected}
  - {match: {b: "*"}, entity: "{b}", resource: r, limits: daily, consume: {rpd: 1}}
  - {match: {c: "*"}, entity: "{c}", resource: r, limits: {rpmo: {rate: 30/720h, burst: 3}}, consume: {rpmo: 1}}
store: {type: dynamodb, embedded: {data: d}}
`)
	want := strings.TrimSpace(`
test.yaml:2: warning: plans.daily.rpd: 1000/day is no budget that starts anew: within 24h up to 2000 are admitted, the capacity and the refill; a smaller burst lowers that
test.yaml:2: warning: plans.idle.other: limits nothing: no rule consumes other
test.yaml:4: warning: limits.system.rpw: 5/168h is no budget that starts anew: within 168h up to 10 are admitted, the capacity and the refill; a smaller burst lowers that
test.yaml:4: warning: limits.system.unused: limits nothing: no rule consumes unused
test.yaml:6: warning: limits.entities.lonely.cascade: has no effect, as the entity has no parent here: add parent, or remove cascade
test.yaml:7: warning: limits.entities.child.parent: elsewhere has no limits under limits.entities: unless stored ones say more, it gets those of its resource or the system, as much as child has
test.yaml:14: warning: store.embedded.data: is not used: the store is dynamodb`)
	if diff := cmp.Diff(want, c.Warnings.Error()); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

// A note says what a bucket admits in its first period, wherever the limit stands.
func TestNoteOnTheFirstPeriod(t *testing.T) {
	const rule = "\ndomains: [{domain: a, rules: [{match: {a: '*'}, entity: e, resource: r, consume: {rpm: 1}"
	for text, at := range map[string]string{
		"limits: {system: {rpm: 100/minute}}" + rule + "}]}]":       "test.yaml:1: ",
		"plans: {p: {rpm: 100/minute}}" + rule + ", limits: p}]}]":  "test.yaml:1: ",
		rule + ", limits: {rpm: 100/minute}}]}]":                    "test.yaml:2: ",
		rule + ", limits: {rpm: {rate: 100/minute, burst: 10}}}]}]": "",
		rule + ", limits: {rpm: 1/minute}}]}]":                      "",
		rule + ", limits: {rpm: 100/hour calendar, rps: 5/s}}]}]":   "", // rps is not consumed
	} {
		want := ""
		if at != "" {
			want = at + "note: 100/minute is a full bucket and its refill: it admits up to 200 in the first minute. {rate: 100/minute, burst: 10} admits at most 110"
		}
		if got := parse(t, text).Note; got != want {
			t.Errorf("%s: note %q, want %q", text, got, want)
		}
	}
}

// A limit in flight needs a rule that ends requests, wherever the limit stands.
func TestInFlightNeedsAnEnd(t *testing.T) {
	const rules = `
  - {match: {user: "*"}, entity: "user/{user}", resource: r, consume: {slots: 1}}
  - {match: {job: "*"}, entity: "user/{job}", resource: r, limits: {slots: {in_flight: 5, max_time: 10m}}, consume: {slots: 1}}
`
	for _, test := range []struct{ limits, more, warned string }{
		{"slots: {in_flight: 5, max_time: 10m}", "", "rules[0]"},
		{"slots: 5 in flight 10m", "", "rules[0]"},
		{"slots: 5/minute", "", "rules[1]"},
		{"slots: 5 in flight 10m", `  - {match: {reservation_id: "*"}, end: true}`, ""},
		{"slots: 5 in flight 10m", `  - {match: {reservation_id: "*"}, settle: {slots: hits}}`, ""},
	} {
		c := parse(t, "limits: {system: {"+test.limits+"}}\ndomains:\n- domain: a\n  rules:"+rules+test.more)
		warned := strings.Contains(c.Warnings.Error(), "domains[0]."+test.warned+".consume.slots: counts requests in flight, and no rule ends one")
		if warned != (test.warned != "") {
			t.Errorf("%s, %s: warnings\n%v", test.limits, test.more, c.Warnings)
		}
	}
}

// A budget has no usage of its own. A rule that consumes it by itself is warned of.
func TestBudgetsConsumedByThemselves(t *testing.T) {
	const file = `
limits: {system: {tokens: 9/minute, tokens.month: {quota: 5/month}, tokens.day: 5/day, tokens_month: {quota: 5/month}}}
domains: [{domain: a, rules: [{match: {a: "*"}, entity: "{a}", resource: r, consume: {%s: 1}}]}]
`
	for limit, warned := range map[string]bool{"tokens": false, "tokens.month": true, "tokens.day": false, "tokens_month": false} {
		c := parse(t, fmt.Sprintf(file, limit))
		if got := strings.Contains(c.Warnings.Error(), "is a quota with the name of a budget of tokens"); got != warned {
			t.Errorf("%s: warned %t, want %t: %v", limit, got, warned, c.Warnings)
		}
	}
}

// A budget holds at least what a call takes of its limit.
func TestBudgetsThatHoldLess(t *testing.T) {
	const file = `
limits: {system: {usd: 90_000_000/hour, usd.month: {quota: 10 USD/month}, usd.day: 5/day}}
domains: [{domain: a, rules: [{match: {a: "*"}, entity: "{a}", resource: r, consume: {usd: %d}}]}]
`
	for amount, warned := range map[int]bool{10_000_000: false, 10_000_001: true} {
		c := parse(t, fmt.Sprintf(file, amount))
		if got := strings.Contains(c.Warnings.Error(), `limits.system."usd.month" holds 10 USD: such a request can never pass`); got != warned || strings.Contains(c.Warnings.Error(), `"usd.day" holds`) {
			t.Errorf("%d: warned %t, want %t: %v", amount, got, warned, c.Warnings)
		}
	}
}

// A limit that a rule consumes is one of the rule, of its plan or of a level. Or the rule says that it is
// stored.
func TestLimitsThatAreNowhere(t *testing.T) {
	const file = `
plans: {daily: {rpd: 1000/day}}
limits: {system: {rpm: 1/minute}, entities: {e: {limits: {r: {own: 1/minute}}}}}
domains: [{domain: d, rules: [{match: {a: "*"}, entity: "{a}", resource: r, %s}]}]
`
	for rule, want := range map[string]string{
		"consume: {rpm: 1, own: 1}":                          "",
		"consume: {rpn: 1}":                                  "rpn",
		"consume: {rpn: 1}, stored: expected":                "",
		"override: sent, consume: {sent: 1}":                 "", // the gateway has it
		"consume: {rpd: 1}":                                  "rpd",
		"limits: daily, consume: {rpd: 1, rpm: 1}":           "",
		`limits: "{a}", consume: {rpd: 1}`:                   "",
		"limits: daily, consume: {rpw: 1}":                   "rpw",
		"limits: {rps: 1/second}, consume: {rps: 1, rpm: 1}": "",
		"limits: {rps: 1/second}, consume: {rps: 1, rpd: 1}": "rpd",
	} {
		_, err := config.Parse("c.yaml", fmt.Appendf(nil, file, rule), nil)
		switch text := fmt.Sprint(err); {
		case want == "" && strings.Contains(text, "is nowhere"), want != "" && !strings.Contains(text, want+": is nowhere: no level under limits has "+want):
			t.Errorf("%s: %v", rule, err)
		}
	}
}

func TestMergeKeys(t *testing.T) {
	c := parse(t, `
plans:
  free: &free {rpm: 20/minute, tpm: 10/minute}
  paid: {<<: *free, rpm: 600/minute}
  team: {<<: [*free, {tph: 5/hour, rpm: 1/second}]}
domains:
- domain: api
  rules:
  - {match: {plan: "*"}, entity: e, resource: "{plan}", limits: "{plan}", consume: {rpm: 1}}
`)
	for plan, want := range map[string]string{"paid": "rpm 600/minute tpm 10/minute", "team": "rpm 20/minute tph 5/hour tpm 10/minute"} {
		var p descriptor.Plan
		c.Rules.Plan(&descriptor.Call{Domain: "api", Descriptors: []descriptor.Descriptor{{Entries: []descriptor.Entry{{Key: "plan", Value: plan}}}}}, &p)
		var got []string
		for limits, i := p.Request.Takes[0].Limits, 0; i < limits.Len(); i++ {
			got = append(got, limits.At(i).Name+" "+limits.At(i).String())
		}
		if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
			t.Errorf("plan %s (-want +got):\n%s", plan, diff)
		}
	}
}

func TestFilesAndHash(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "ratelimit.yaml"), "include: [{path: rules.d}]\n")
	write(t, filepath.Join(dir, "rules.d", "b.yml"), "domain: b\n")
	write(t, filepath.Join(dir, "rules.d", "a.yaml"), "domain: a\n")
	write(t, filepath.Join(dir, "more.yaml"), "domain: more\n")
	load := func() *config.Config {
		t.Helper()
		c, err := config.Load(filepath.Join(dir, "ratelimit.yaml"), config.Options{Rules: []string{filepath.Join(dir, "more.yaml")}})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	first := load()
	want := []string{"ratelimit.yaml", "rules.d/a.yaml", "rules.d/b.yml", "more.yaml"}
	for i := range want {
		want[i] = filepath.Join(dir, want[i])
	}
	if diff := cmp.Diff(want, first.Files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if again := load(); again.Hash != first.Hash || len(first.Hash) != 64 {
		t.Errorf("the hash of the same files is %s, then %s", first.Hash, again.Hash)
	}
	write(t, filepath.Join(dir, "rules.d", "b.yml"), "domain: c\n")
	if changed := load(); changed.Hash == first.Hash {
		t.Error("the hash of other files is the same")
	}
}

func TestLoadReportsWhatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	large := filepath.Join(dir, "large.yaml")
	write(t, large, strings.Repeat("#", 16<<20+1))
	missing := filepath.Join(dir, "missing.yaml")
	for _, test := range []struct{ path, rules, want string }{
		{missing, "", missing + ": does not exist"},
		{dir, "", dir + ": is no regular file: it is a directory"},
		{large, "", large + ": makes the configuration larger than 16 MiB, all its files together"},
		{"", missing, missing + ": does not exist"},
		{"", filepath.Join(dir, "[.yaml"), filepath.Join(dir, "[.yaml") + ": \"" + filepath.Join(dir, "[.yaml") + "\" is not a valid pattern: a bracket is not closed"},
	} {
		o := config.Options{}
		if test.rules != "" {
			o.Rules = []string{test.rules}
		}
		_, err := config.Load(test.path, o)
		if err == nil || err.Error() != test.want {
			t.Errorf("Load(%q, %q)\n got %v\nwant %s", test.path, test.rules, err, test.want)
		}
	}
}

func TestProblemsAreBounded(t *testing.T) {
	_, err := config.Parse("many.yaml", []byte("limits: {system: {"+strings.Repeat("wcu: 1, ", 3000)+"}}"), fstest.MapFS{})
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 1001 || lines[1000] != "many.yaml: and 2000 more problems" {
		t.Errorf("%d lines, the last is %q", len(lines), lines[len(lines)-1])
	}
	long := strings.Repeat("x", 1<<20)
	for _, data := range []string{"drain: " + long, long + ": 1", "plans: {" + long + ": 1}", "plans: {a: {rpm: 1/" + long + "}}"} {
		_, err := config.Parse("long.yaml", []byte(data), nil)
		if err == nil || len(err.Error()) > 2000 {
			t.Errorf("%.30s… is reported in %d bytes", data, len(text(err)))
		}
	}
}

// write writes a file and the directories above it.
func write(t *testing.T, name, data string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A table that is configured without the type of the store is not used, and a warning says so.
func TestUnusedTable(t *testing.T) {
	const rules = "\ndomains: [{domain: api, rules: [{match: {a: '*'}, unlimited: true}]}]\n"
	c := parse(t, "store: {dynamodb: {table: limits}}"+rules)
	if got, want := c.Warnings.Error(), "test.yaml:1: warning: store.dynamodb: is used with store.type: dynamodb, or --store dynamodb, only: without them buckets are in the program itself"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if c := parse(t, "store: {type: dynamodb, dynamodb: {table: limits}}"+rules); len(c.Warnings) > 0 {
		t.Errorf("a table that is used: %v", c.Warnings)
	}
}
