package rls_test

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/embedded"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/rls"
)

// clock is a clock that moves only by advance.
type clock struct{ ms atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.ms.Store(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).UnixMilli())
	return c
}

func (c *clock) now() time.Time          { return time.UnixMilli(c.ms.Load()) }
func (c *clock) advance(d time.Duration) { c.ms.Add(d.Milliseconds()) }

func limits(tb testing.TB, all ...limiter.Limit) *limiter.Limits {
	tb.Helper()
	set, err := limiter.NewLimits(all...)
	if err != nil {
		tb.Fatal(err)
	}
	return set
}

// match makes the match of a rule from keys and values in turn.
func match(pairs ...string) (all []descriptor.MatchSpec) {
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, descriptor.MatchSpec{Key: pairs[i], Value: pairs[i+1]})
	}
	return all
}

// takes makes the one take of a rule, in which a hit is a token of each limit.
func takes(entity, resource string, own *limiter.Limits, names ...string) []descriptor.TakeSpec {
	t := descriptor.TakeSpec{Entity: entity, Resource: resource, Limits: own}
	for _, name := range names {
		t.Consume = append(t.Consume, descriptor.ConsumeSpec{Limit: name, PerHit: limiter.Milli})
	}
	return []descriptor.TakeSpec{t}
}

// domains are the rules that the tests run with.
func domains(tb testing.TB) []descriptor.DomainSpec {
	tb.Helper()
	rpm := limits(tb, limiter.PerMinute("rpm", 10))
	child := takes("key/{child}", "api", nil, "rpm")
	child[0].Parents = []string{"org/{org}"}
	planned := takes("{plan}", "api", nil, "rpm")
	planned[0].Plan = "{plan}"
	return []descriptor.DomainSpec{
		{Domain: "llm", Rules: []descriptor.RuleSpec{
			{Name: "requests", Match: match("api_key", "*", "model", "*"), Takes: takes("key/{api_key}", "{model}", rpm, "rpm")},
			{
				Name: "tokens", Overdraw: true, Match: match("api_key", "*", "model", "*", "meter", "tokens"),
				Takes: takes("key/{api_key}", "{model}", limits(tb, limiter.PerMinute("tpm", 1000)), "tpm"),
			},
			{Name: "free", Unlimited: true, Match: match("tier", "free")},
			{Name: "trial", Shadow: true, Match: match("trial", "*"), Takes: takes("{trial}", "api", limits(tb, limiter.PerMinute("lower", 2)), "lower")},
			{Name: "tried", Match: match("trial", "*"), Takes: takes("{trial}", "api", rpm, "rpm")},
			{Name: "ghost", Match: match("ghost", "*"), Takes: takes("{ghost}", "api", nil, "nowhere")},
			{Name: "planned", Match: match("plan", "*"), Takes: planned},
			{Name: "exempt", Match: match("exempt", "*"), Takes: takes("{exempt}", "api", limits(tb, limiter.Unlimited("rpm")), "rpm")},
			{Name: "two", Match: match("two", "*"), Takes: takes("{two}", "api", limits(tb, limiter.PerSecond("rps", 5), limiter.PerHour("rph", 8)), "rps", "rph")},
			{Name: "child", Match: match("child", "*", "org", "*"), Takes: child},
		}},
		{Domain: "closed", DenyUnknown: true, Rules: []descriptor.RuleSpec{
			{Name: "requests", Match: match("api_key", "*"), Takes: takes("key/{api_key}", "api", rpm, "rpm")},
		}},
	}
}

func compile(tb testing.TB, specs []descriptor.DomainSpec) *descriptor.Rules {
	tb.Helper()
	plans := map[string]*limiter.Limits{"basic": limits(tb, limiter.PerMinute("rpm", 3))}
	rules, problems := descriptor.Compile(specs, plans)
	if len(problems) > 0 {
		tb.Fatalf("rules: %v", problems)
	}
	return rules
}

// newLimiter returns a limiter over an embedded store.
func newLimiter(tb testing.TB, now func() time.Time) *limiter.Limiter {
	tb.Helper()
	store := embedded.New(embedded.Config{Now: now})
	tb.Cleanup(func() {
		if err := store.Close(context.Background()); err != nil {
			tb.Error(err)
		}
	})
	l, err := limiter.New(limiter.Config{Store: store})
	if err != nil {
		tb.Fatal(err)
	}
	static := limiter.Static{
		Resources: map[string]*limiter.Limits{"api": limits(tb, limiter.PerMinute("rpm", 10))},
		Entities: map[string]limiter.StaticEntity{
			"org/small": {Limits: map[string]*limiter.Limits{limiter.DefaultResource: limits(tb, limiter.PerMinute("rpm", 2))}},
		},
	}
	if err := l.SetStatic(context.Background(), static); err != nil {
		tb.Fatal(err)
	}
	return l
}

// env is a service with a clock of its own, and a client of its server on loopback.
type env struct {
	clock    *clock
	service  *rls.Service
	registry *prometheus.Registry
	conn     *grpc.ClientConn
}

// newEnv starts a service with the rules of domains and a real limiter. change may change its
// Config.
func newEnv(tb testing.TB, change func(*rls.Config)) *env {
	tb.Helper()
	e := &env{clock: newClock(), registry: prometheus.NewRegistry()}
	cfg := rls.Config{
		Options:    rls.Options{Headers: rls.Headers{RetryAfter: true}},
		Now:        e.clock.now,
		Registerer: e.registry,
	}
	if change != nil {
		change(&cfg)
	}
	if cfg.Decider == nil {
		cfg.Decider = newLimiter(tb, e.clock.now)
	}
	service, err := rls.New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	service.Reload(compile(tb, domains(tb)), nil)
	e.service = service
	e.conn = dial(tb, service.Register, rls.ServerOptions()...)
	return e
}

// dial starts a server on loopback and returns a connection to it.
func dial(tb testing.TB, register func(grpc.ServiceRegistrar), options ...grpc.ServerOption) *grpc.ClientConn {
	tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	server := grpc.NewServer(options...)
	register(server)
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = conn.Close()
		server.Stop()
		// A test without a call can end before the server has begun to serve.
		if err := <-done; err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			tb.Error(err)
		}
	})
	return conn
}

// ask calls with a request in JSON.
func (e *env) ask(tb testing.TB, request string) (*rlsv3.RateLimitResponse, error) {
	tb.Helper()
	return rlsv3.NewRateLimitServiceClient(e.conn).ShouldRateLimit(tb.Context(), fromJSON(tb, request, &rlsv3.RateLimitRequest{}))
}

func fromJSON[M proto.Message](tb testing.TB, text string, m M) M {
	tb.Helper()
	if err := protojson.Unmarshal([]byte(text), m); err != nil {
		tb.Fatalf("%v in %s", err, text)
	}
	return m
}

// step is one call of a script: after a time, the request and its answer, in JSON.
type step struct {
	after time.Duration
	ask   string
	want  string
}

func (e *env) run(t *testing.T, steps []step) {
	t.Helper()
	for i, s := range steps {
		e.clock.advance(s.after)
		got, err := e.ask(t, s.ask)
		if err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		if diff := cmp.Diff(fromJSON(t, s.want, &rlsv3.RateLimitResponse{}), got, protocmp.Transform()); diff != "" {
			t.Errorf("step %d: %s\n(-want +got)\n%s", i, s.ask, diff)
		}
	}
}

// rawCodec passes bytes, so that a client can send any bytes.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

var _ encoding.CodecV2 = rawCodec{}

// askRaw calls with bytes and reads the answer with the standard library, which refuses text that
// is not UTF-8.
func (e *env) askRaw(tb testing.TB, wire []byte) (*rlsv3.RateLimitResponse, error) {
	tb.Helper()
	var out []byte
	err := e.conn.Invoke(tb.Context(), rlsv3.RateLimitService_ShouldRateLimit_FullMethodName, wire, &out,
		grpc.ForceCodecV2(rawCodec{}), grpc.MaxCallSendMsgSize(rls.MaxReceived))
	if err != nil {
		return nil, err
	}
	m := &rlsv3.RateLimitResponse{}
	if err := proto.Unmarshal(out, m); err != nil {
		tb.Fatalf("the answer is not a RateLimitResponse: %v", err)
	}
	return m, nil
}
