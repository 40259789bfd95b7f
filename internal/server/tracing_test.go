package server

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/embedded"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/rls"
)

// received is an OTLP collector in this process.
type received struct {
	collector.UnimplementedTraceServiceServer

	mu    sync.Mutex
	spans []*otlp.Span
	about map[string]string // of the resource
}

func (r *received) Export(_ context.Context, req *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, of := range req.GetResourceSpans() {
		for _, kv := range of.GetResource().GetAttributes() {
			r.about[kv.GetKey()] = kv.GetValue().GetStringValue()
		}
		for _, s := range of.GetScopeSpans() {
			r.spans = append(r.spans, s.GetSpans()...)
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

// serve starts a server, and returns its address.
func serve(t *testing.T, s *grpc.Server) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { _ = s.Serve(l) })
	t.Cleanup(func() {
		s.Stop()
		wg.Wait()
	})
	return l.Addr().String()
}

// setVariables sets the variables of OpenTelemetry, and no others of its own.
func setVariables(t *testing.T, variables map[string]string) {
	t.Helper()
	for _, name := range []string{
		"OTEL_SDK_DISABLED", "OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
		"OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_PROPAGATORS", "OTEL_TRACES_SAMPLER",
		"OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES",
	} {
		t.Setenv(name, variables[name])
	}
}

// slow is a store that is not local to the process, and fails for the entity "key/lost".
type slow struct{ limiter.Store }

func (s slow) Capabilities() limiter.BackendCapabilities {
	c := s.Store.Capabilities()
	c.Local = false
	return c
}

func (s slow) Take(ctx context.Context, now time.Time, ops []limiter.Op) (bool, error) {
	if ops[0].Bucket.Entity == "key/lost" {
		return false, limiter.ErrUnavailable
	}
	return s.Store.Take(ctx, now, ops)
}

// service starts a rate limit service of 2 calls a day for each key. end waits for the spans of its calls:
// a call is answered before its span ends.
func service(t *testing.T, tr *Tracing) (conn *grpc.ClientConn, end func()) {
	t.Helper()
	store := embedded.New(embedded.Config{})
	t.Cleanup(func() { _ = store.Close(context.Background()) })
	l, err := limiter.New(limiter.Config{Store: tr.Store(slow{store})})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	s, err := rls.New(rls.Config{Decider: l})
	if err != nil {
		t.Fatal(err)
	}
	limits, err := limiter.NewLimits(limiter.PerDay("rpd", 2))
	if err != nil {
		t.Fatal(err)
	}
	rules, problems := descriptor.Compile([]descriptor.DomainSpec{{Domain: "shop", Rules: []descriptor.RuleSpec{{
		Name: "keys", Match: []descriptor.MatchSpec{{Key: "key", Value: "*"}},
		Takes: []descriptor.TakeSpec{{Entity: "key/{key}", Resource: "api", Limits: limits, Consume: []descriptor.ConsumeSpec{{Limit: "rpd", PerHit: limiter.Milli}}}},
	}}}}, nil)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	s.Reload(rules, nil)
	server := grpc.NewServer(append(rls.ServerOptions(), tr.ServerOptions()...)...)
	s.Register(server)
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	conn, err = grpc.NewClient(serve(t, server), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn, server.GracefulStop
}

// ask makes the call of a gateway that has a span, for a descriptor of one entry.
func ask(t *testing.T, conn *grpc.ClientConn, key string) {
	t.Helper()
	text := func(b []byte, field protowire.Number, value string) []byte {
		return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), value)
	}
	entry := text(text(nil, 1, "key"), 2, key)
	descriptor := text(nil, 1, string(entry))
	request := text(text(nil, 1, "shop"), 2, string(descriptor))
	ctx := metadata.AppendToOutgoingContext(t.Context(), "traceparent", "00-0102030405060708090a0b0c0d0e0f10-0102030405060708-01")
	var answer []byte
	if err := conn.Invoke(ctx, "/"+rls.ServiceName+"/ShouldRateLimit", request, &answer, grpc.ForceCodecV2(wire{})); err != nil || len(answer) == 0 {
		t.Fatal(answer, err)
	}
}

// wire is a codec of messages that are encoded already.
type wire struct{}

func (wire) Name() string { return "proto" }

func (wire) Marshal(v any) (mem.BufferSlice, error) {
	b, ok := v.([]byte)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	return mem.BufferSlice{mem.SliceBuffer(b)}, nil
}

func (wire) Unmarshal(data mem.BufferSlice, v any) error {
	b, ok := v.(*[]byte)
	if !ok {
		return errors.ErrUnsupported
	}
	*b = data.Materialize()
	return nil
}

// A call is a span below that of the gateway, with its answer, and the calls of the store are
// spans below it.
func TestSpans(t *testing.T) {
	got := &received{about: map[string]string{}}
	server := grpc.NewServer()
	collector.RegisterTraceServiceServer(server, got)
	setVariables(t, map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": "http://" + serve(t, server),
		"OTEL_RESOURCE_ATTRIBUTES":    "deployment.environment.name=test",
	})
	tr, err := NewTracing(t.Context(), "1.2.3", config.Tracing{}, slog.New(slog.DiscardHandler))
	if err != nil || tr == nil {
		t.Fatalf("got %v, %v", tr, err)
	}
	conn, end := service(t, tr)
	for _, key := range []string{"a", "a", "a", "lost"} {
		ask(t, conn, key)
	}
	if _, err := grpc_health_v1.NewHealthClient(conn).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{}); err != nil {
		t.Fatal(err)
	}
	end()
	if err := tr.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"service.name": "ratelimit", "service.version": "1.2.3", "deployment.environment.name": "test"}
	for name, value := range want {
		if got.about[name] != value {
			t.Errorf("resource: %s is %q, want %q", name, got.about[name], value)
		}
	}
	if diff := cmp.Diff(wantedSpans(), summaries(got.spans)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// wantedSpans are those of three calls of one key, of which 2 are admitted, and of one that
// the store does not answer.
func wantedSpans() []string {
	const call = "gateway > envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit"
	return []string{
		call + " > store read", call + " > store read",
		call + " > store take error",
		call + " > store take ratelimit.admitted=false",
		call + " > store take ratelimit.admitted=true", call + " > store take ratelimit.admitted=true",
		call + " domain=shop denied=false", call + " domain=shop denied=false", call + " domain=shop denied=false",
		call + " domain=shop denied=true",
	}
}

// summaries writes spans with their parents, sorted.
func summaries(spans []*otlp.Span) []string {
	byID := map[string]*otlp.Span{}
	for _, s := range spans {
		byID[string(s.GetSpanId())] = s
	}
	all := map[string]int{}
	for _, s := range spans {
		text := s.GetName()
		for p := s; ; {
			if string(p.GetParentSpanId()) == "\x01\x02\x03\x04\x05\x06\x07\x08" && p.GetTraceId()[0] == 1 {
				text = "gateway > " + text
				break
			}
			p = byID[string(p.GetParentSpanId())]
			if p == nil {
				break
			}
			text = p.GetName() + " > " + text
		}
		attributes := map[string]string{}
		for _, kv := range s.GetAttributes() {
			attributes[kv.GetKey()] = strings.Trim(strings.TrimSpace(kv.GetValue().String()[strings.Index(kv.GetValue().String(), ":")+1:]), `"`)
		}
		switch {
		case s.GetStatus().GetCode() == otlp.Status_STATUS_CODE_ERROR:
			text += " error"
		case attributes["ratelimit.domain"] != "":
			text += " domain=" + attributes["ratelimit.domain"] + " denied=" + attributes["ratelimit.denied"]
		case attributes["ratelimit.admitted"] != "":
			text += " ratelimit.admitted=" + attributes["ratelimit.admitted"]
		}
		all[text]++
	}
	out := make([]string, 0, len(spans))
	for _, text := range slices.Sorted(maps.Keys(all)) {
		out = append(out, slices.Repeat([]string{text}, all[text])...)
	}
	return out
}

// Without an exporter there is no tracing, and a server has no part of it.
func TestOff(t *testing.T) {
	for _, variables := range []map[string]string{
		{},
		{"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4317"},
		{"OTEL_SDK_DISABLED": "True", "OTEL_TRACES_EXPORTER": "otlp"},
		{"OTEL_SERVICE_NAME": "edge"},
	} {
		setVariables(t, variables)
		tr, err := NewTracing(t.Context(), "", config.Tracing{}, slog.New(slog.DiscardHandler))
		if err != nil || tr != nil {
			t.Errorf("%v: got %v, %v", variables, tr, err)
		}
	}
	var off *Tracing
	store := slow{embedded.New(embedded.Config{})}
	defer func() { _ = store.Close(t.Context()) }()
	if off.Store(store) != limiter.Store(store) || len(off.ServerOptions()) > 0 || off.Close(t.Context()) != nil {
		t.Error("tracing that is off does something")
	}
}

func TestEnvironmentIsRefused(t *testing.T) {
	for name, want := range map[string]string{
		"OTEL_TRACES_EXPORTER":               `OTEL_TRACES_EXPORTER is "zipkin"; it must be otlp or none`,
		"OTEL_EXPORTER_OTLP_PROTOCOL":        "it must be grpc",
		"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "it must be grpc",
		"OTEL_TRACES_SAMPLER":                `OTEL_TRACES_SAMPLER is "zipkin"; it must be always_on`,
		"OTEL_PROPAGATORS":                   `it must be a list of tracecontext and baggage, or none`,
	} {
		setVariables(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4317", name: "zipkin"})
		if _, err := NewTracing(t.Context(), "", config.Tracing{}, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", name, err, want)
		}
	}
}

// The SDK would panic, or take a default and write the value to the standard error.
func TestVariablesThatCannotBeObeyed(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "none.pem")
	for _, v := range []struct{ name, value, want string }{
		{"OTEL_BSP_MAX_QUEUE_SIZE", "-1", `OTEL_BSP_MAX_QUEUE_SIZE is "-1"; it must be a whole number, 1 to 1000000`},
		{"OTEL_BSP_MAX_QUEUE_SIZE", "99999999999999", "1 to 1000000"},
		{"OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "0", "1 to 1000000"},
		{"OTEL_BSP_SCHEDULE_DELAY", "5s", "1 to 86400000"},
		{"OTEL_EXPORTER_OTLP_TIMEOUT", "-5", "1 to 86400000"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT", "::::garbage", "OTEL_EXPORTER_OTLP_ENDPOINT is no address of a collector"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://bad host:4317", "no address"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://host:99999", "no address"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://", "no address"},
		{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://user:hush@host", "no address"},
		{"OTEL_EXPORTER_OTLP_HEADERS", "a=hush,b=%zz", "OTEL_EXPORTER_OTLP_HEADERS: header 2 cannot be sent"},
		{"OTEL_EXPORTER_OTLP_TRACES_HEADERS", "hush", "header 1 cannot be sent"},
		{"OTEL_EXPORTER_OTLP_HEADERS", "a b=hush", "header 1 cannot be sent"},
		{"OTEL_EXPORTER_OTLP_CERTIFICATE", missing, "OTEL_EXPORTER_OTLP_CERTIFICATE: open " + missing},
		{"OTEL_EXPORTER_OTLP_CLIENT_KEY", missing, "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and"},
		{"OTEL_EXPORTER_OTLP_COMPRESSION", "zip", "it must be gzip or none"},
	} {
		t.Run(v.name, func(t *testing.T) {
			setVariables(t, map[string]string{"OTEL_TRACES_EXPORTER": "otlp"})
			t.Setenv(v.name, v.value)
			tr, err := NewTracing(t.Context(), "", config.Tracing{}, slog.New(slog.DiscardHandler))
			if err == nil || !strings.Contains(err.Error(), v.want) || strings.Contains(err.Error(), "hush") {
				t.Errorf("%s: got %v, want %s", v.value, err, v.want)
			}
			_ = tr.Close(t.Context())
		})
	}
}

// Addresses and headers that the SDK obeys stay allowed.
func TestVariablesThatAreObeyed(t *testing.T) {
	for _, v := range [][2]string{
		{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://[::1]:4317"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT", "https://collector"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4317/v1"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4317"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT", "unix:///run/otel.sock"},
		{"OTEL_EXPORTER_OTLP_HEADERS", "api-key=a%20b, x-tenant = c"},
		{"OTEL_BSP_MAX_QUEUE_SIZE", "4096"},
		{"OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"},
	} {
		setVariables(t, map[string]string{"OTEL_TRACES_EXPORTER": "otlp"})
		t.Setenv(v[0], v[1])
		tr, err := NewTracing(t.Context(), "", config.Tracing{}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Errorf("%s=%s: %v", v[0], v[1], err)
		}
		t.Setenv(v[0], "")
		_ = tr.Close(t.Context())
	}
}

// A collector that accepts connections and never answers delays no call. It delays the end by the configured
// time.
func TestCollectorThatHangs(t *testing.T) {
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	setVariables(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://" + l.Addr().String(), "OTEL_BSP_MAX_QUEUE_SIZE": "10", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "5"})
	tr, err := NewTracing(t.Context(), "", config.Tracing{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	conn, _ := service(t, tr)
	for range 100 { // many times the size of the queue and of a batch
		ask(t, conn, "a")
	}
	ctx, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer stop()
	began := time.Now()
	if err := tr.Close(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 5*time.Second {
		t.Errorf("the end took %v: %v", time.Since(began), err)
	}
}

func TestShareOfSamplers(t *testing.T) {
	for arg, ok := range map[string]bool{"": true, "0": true, "0.01": true, "1": true, "2": false, "-1": false, "many": false, "NaN": false} {
		setVariables(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4317", "OTEL_TRACES_SAMPLER": "parentbased_traceidratio"})
		t.Setenv("OTEL_TRACES_SAMPLER_ARG", arg)
		tr, err := NewTracing(t.Context(), "", config.Tracing{}, slog.New(slog.DiscardHandler))
		if (err == nil) != ok {
			t.Errorf("%q: got %v", arg, err)
		}
		if err := tr.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// Propagators that the environment names are used: without any, a call is the root of a trace.
func TestNoPropagators(t *testing.T) {
	got := &received{about: map[string]string{}}
	server := grpc.NewServer()
	collector.RegisterTraceServiceServer(server, got)
	setVariables(t, map[string]string{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://" + serve(t, server), "OTEL_PROPAGATORS": "none", "OTEL_SERVICE_NAME": "edge"})
	tr, err := NewTracing(t.Context(), "", config.Tracing{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	conn, end := service(t, tr)
	ask(t, conn, "a")
	end()
	if err := tr.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if all := summaries(got.spans); len(all) == 0 || strings.Contains(all[0], "gateway") || got.about["service.name"] != "edge" {
		t.Errorf("got %v of %v", all, got.about)
	}
}

// A collector that does not answer costs no call anything, and the log says so once.
func TestCollectorThatIsGone(t *testing.T) {
	setVariables(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"})
	t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "50")
	var log bytes.Buffer
	tr, err := NewTracing(t.Context(), "", config.Tracing{}, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	conn, end := service(t, tr)
	for range 3 {
		ask(t, conn, "a")
	}
	end()
	if err := tr.Close(t.Context()); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if strings.Count(log.String(), "spans were dropped") != 1 {
		t.Errorf("log: %q", &log)
	}
}
