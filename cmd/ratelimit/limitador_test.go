package main

import (
	"bufio"
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/pkg/rls"
	"github.com/ratelimit/ratelimit/test/kit/programtest"
)

// operatorLimits is a file as Kuadrant's operator writes it.
const operatorLimits = `
- namespace: llm/chat
  max_value: 2
  seconds: 3600
  name: per-user
  conditions:
  - descriptors[0]["limit.chat__1a2b"] == "1"
  variables:
  - descriptors[0]["auth.identity.userid"]
`

const chatValues = `{"namespace":"llm/chat","values":{"limit.chat__1a2b":"1","auth.identity.userid":"al"},"delta":1}`

// The program starts as Kuadrant's operator starts limitador, with an empty file first. A change of the file counts,
// and counters stay.
func TestStartsAsLimitador(t *testing.T) {
	file := filepath.Join(t.TempDir(), "limitador-config.yaml")
	if err := os.WriteFile(file, []byte("[]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := startAs(t, map[string]string{"ENVOY_RLS_HOST": "127.0.0.1", "HTTP_API_HOST": "127.0.0.1"}, "limitador-server",
		"--limit-name-in-labels", "--rate-limit-headers", "DRAFT_VERSION_03", "-vvv", "--http-port", "0", "--rls-port", "0", "--metric-labels-default", "descriptors[1]", file, "memory", "--cache", "10")
	d.serves()
	if code, text := d.get(d.http, "/status", ""); code != 200 || text != "null\n" {
		t.Errorf("/status: %d %q", code, text)
	}
	if code, _ := d.get(d.http, "/check_and_report", chatValues); code != 200 {
		t.Errorf("without a limit: %d", code)
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
	}
	limits := func() string { _, text := d.get(d.http, "/limits/llm/chat", ""); return text }
	write(operatorLimits)
	eventually(t, "the limits of the new file", func() bool { return strings.Contains(limits(), `"max_value":2`) })
	for i, want := range []int{200, 200, 429} {
		if code, text := d.get(d.http, "/check_and_report", chatValues); code != want {
			t.Errorf("call %d: %d %s", i, code, text)
		}
	}
	write(strings.Replace(operatorLimits, "max_value: 2", "max_value: 3", 1))
	eventually(t, "a higher limit", func() bool { return strings.Contains(limits(), `"max_value":3`) })
	eventually(t, "one more call", func() bool { code, _ := d.get(d.http, "/check_and_report", chatValues); return code == 200 })
	if code, _ := d.get(d.http, "/check_and_report", chatValues); code != 429 {
		t.Errorf("counters were lost: %d", code)
	}
	_, metrics := d.get(d.http, "/metrics", "")
	for _, want := range []string{"limitador_up 1", `authorized_calls{limitador_namespace="llm/chat"} 3`, `limited_calls{limitador_limit_name="per-user",limitador_namespace="llm/chat"}`, "datastore_latency_count"} {
		if !strings.Contains(metrics, want) {
			t.Errorf("/metrics lacks %s", want)
		}
	}
	d.asksEnvoy()
}

// asksEnvoy calls the services over gRPC, and looks at server reflection.
func (d *drop) asksEnvoy() {
	t := d.t
	t.Helper()
	conn, err := grpc.NewClient(d.grpc, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	var request rlsv3.RateLimitRequest
	if err := protojson.Unmarshal([]byte(`{"domain":"llm/chat","descriptors":[{"entries":[{"key":"limit.chat__1a2b","value":"1"},{"key":"auth.identity.userid","value":"al"}]}]}`), &request); err != nil {
		t.Fatal(err)
	}
	var answer rlsv3.RateLimitResponse
	if err := conn.Invoke(t.Context(), "/"+rls.KuadrantServiceName+"/CheckRateLimit", &request, &answer); err != nil || answer.GetOverallCode() != rlsv3.RateLimitResponse_OVER_LIMIT {
		t.Errorf("CheckRateLimit: %v, %v", &answer, err)
	}
	stream, err := reflectionpb.NewServerReflectionClient(conn).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, asked := range []*reflectionpb.ServerReflectionRequest{
		{MessageRequest: &reflectionpb.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: rls.KuadrantServiceName}},
		{MessageRequest: &reflectionpb.ServerReflectionRequest_FileByFilename{FileByFilename: rls.KuadrantFile}},
		{MessageRequest: &reflectionpb.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: "envoy.service.ratelimit.v3.RateLimitService"}},
	} {
		if err := stream.Send(asked); err != nil {
			t.Fatal(err)
		}
		reply, err := stream.Recv()
		if err != nil || len(reply.GetFileDescriptorResponse().GetFileDescriptorProto()) == 0 {
			t.Errorf("reflection of %v: %v, %v", asked, reply, err)
		}
	}
}

// A file is checked alone, and a command line without one says what is missing.
func TestLimitadorCommandLine(t *testing.T) {
	good := programtest.WriteFile(t, "limits.yaml", operatorLimits)
	bad := programtest.WriteFile(t, "bad.yaml", "- {namespace: a, max_value: 1, seconds: 60, conditions: ['x == 1']}\n")
	for _, test := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--validate", good}, 0, ""},
		{[]string{"--validate", bad}, command.ExitUsage, "undeclared reference to 'x'"},
		{nil, command.ExitUsage, "the file of limits is missing: name it as the first argument, or by LIMITS_FILE"},
		{[]string{good, "disk"}, command.ExitUsage, "disk needs a PATH"},
	} {
		if code, _, stderr := output(t, append([]string{"limitador-server"}, test.args...)...); code != test.code || !strings.Contains(stderr, test.want) {
			t.Errorf("%v: exit code %d, stderr %s", test.args, code, stderr)
		}
	}
}

// StatsD gets the growth of counters with tags, also what could not be sent at first.
func TestStatsdAndDebugPort(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	_ = listener.Close() // the server comes later
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	debug := free.Addr().String()
	_, debugPort, _ := net.SplitHostPort(debug)
	_ = free.Close()
	d := startAs(t, map[string]string{
		"RUNTIME_ROOT": ruleFiles(t, map[string]string{"config/a.yaml": oneAnHour("a")}), "USE_STATSD": "true", "STATSD_HOST": "127.0.0.1", "STATSD_PORT": port, "STATS_FLUSH_INTERVAL": "100ms",
		"EXTRA_TAGS": "env:test", "DEBUG_HOST": "127.0.0.1", "DEBUG_PORT": debugPort, "LOG_LEVEL": "debug",
	})
	d.serves()
	d.ask("a")
	d.ask("a")
	eventually(t, "a warning", func() bool { return strings.Contains(d.log.String(), "metrics cannot be sent to StatsD") })
	if listener, err = new(net.ListenConfig).Listen(t.Context(), "tcp", address); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	lines := make(chan string, 100)
	go receive(listener, lines)
	want := map[string]bool{
		"ratelimit.service.rate_limit.a.user.total_hits.__env=test:2|c": true, "ratelimit.service.rate_limit.a.user.within_limit.__env=test:1|c": true,
		"ratelimit.service.rate_limit.a.user.over_limit.__env=test:1|c": true, "ratelimit_server.ShouldRateLimit.total_requests.__env=test:2|c": true,
		"ratelimit.service.config_load_success.__env=test:1|c": true,
	}
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	for len(want) > 0 {
		select {
		case line := <-lines:
			delete(want, line)
		case <-ctx.Done():
			t.Fatalf("StatsD did not get %v", want)
		}
	}
	if _, text := d.get(debug, "/rlconfig", ""); text != "a.user: unit=HOUR requests_per_unit=1, shadow_mode: false\n" {
		t.Errorf("/rlconfig: %s", text)
	}
	if _, text := d.get(debug, "/stats", ""); !strings.Contains(text, "ratelimit.service.rate_limit.a.user.over_limit: 1\n") {
		t.Errorf("/stats: %s", text)
	}
}

// receive sends the lines that a listener gets.
func receive(listener net.Listener, lines chan<- string) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer func() { _ = conn.Close() }()
			for all := bufio.NewScanner(io.Reader(conn)); all.Scan(); {
				lines <- all.Text()
			}
		}()
	}
}

// With HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED probes fail while there is no domain.
func TestHealthyWithADomain(t *testing.T) {
	for needs, want := range map[string]int{"true": 500, "false": 200} {
		t.Run(needs, func(t *testing.T) {
			d := startAs(t, map[string]string{"ENVOY_RLS_HOST": "127.0.0.1", "HTTP_API_HOST": "127.0.0.1"}, "serve", "--rules", programtest.WriteFile(t, "empty.yaml", "[]\n"),
				"--config", programtest.WriteFile(t, "c.yaml", "envoyproxy: {needs_domain: "+needs+"}\n"), "--grpc-address", "127.0.0.1:0", "--http-address", "127.0.0.1:0")
			d.serves()
			if code, _ := d.get(d.http, "/healthcheck", ""); code != want {
				t.Errorf("/healthcheck: %d, want %d", code, want)
			}
			if code, _ := d.get(d.http, "/readyz", ""); code != 200 {
				t.Errorf("/readyz: %d", code)
			}
		})
	}
}
