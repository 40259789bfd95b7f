package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	rlscommon "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection/grpc_reflection_v1"

	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/pkg/admin"
	"github.com/ratelimit/ratelimit/test/kit/proctest"
	"github.com/ratelimit/ratelimit/test/kit/programtest"
)

// patience bounds every wait of these tests.
const patience = 30 * time.Second

// running is a service that a test has started.
type running struct {
	grpc, http string // addresses
	stop       context.CancelCauseFunc
	code       chan int // its exit code
	log        *proctest.LogBuffer
}

// start runs serve on free ports and returns when it answers.
func start(t *testing.T, args ...string) *running {
	t.Helper()
	ctx, cancel := context.WithCancelCause(context.Background())
	r := &running{stop: cancel, code: make(chan int, 1), log: new(proctest.LogBuffer)}
	out, w := io.Pipe()
	go func() {
		defer func() { _ = w.Close() }()
		r.code <- run(ctx, append([]string{"serve", "--grpc-address", "127.0.0.1:0", "--http-address", "127.0.0.1:0"}, args...), w, r.log)
	}()
	t.Cleanup(func() {
		cancel(command.ErrInterrupted)
		if t.Failed() {
			t.Logf("log of the service:\n%s", r.log)
		}
	})
	scanner := bufio.NewScanner(out)
	if !scanner.Scan() {
		t.Fatalf("no greeting; the log says:\n%s", r.log)
	}
	if _, err := fmt.Sscanf(scanner.Text(), "ratelimit "+command.Version()+" answers gRPC on %s and HTTP on %s", &r.grpc, &r.http); err != nil {
		t.Fatalf("greeting %q: %v", scanner.Text(), err)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }() // the rest of the greeting, until the service ends
	return r
}

// adminURL returns the address of the service's admin listener: that on TCP, if there is one.
func (r *running) adminURL(t *testing.T) string {
	t.Helper()
	var name string
	eventually(t, "the service to say where it listens", func() bool {
		_, rest, ok := strings.Cut(r.log.String(), " admin=")
		name, _, _ = strings.Cut(rest, " ")
		name, _, _ = strings.Cut(name, ",")
		return ok
	})
	if path, ok := strings.CutPrefix(name, "unix:"); ok {
		return "unix://" + path
	}
	return "https://" + name
}

// wait returns the service's exit code once it has stopped.
func (r *running) wait(t *testing.T) int {
	t.Helper()
	select {
	case code := <-r.code:
		return code
	case <-time.After(patience):
		t.Fatal("the service does not stop")
		return -1
	}
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("waited in vain for %s", what)
		case <-tick.C:
		}
	}
}

// ask asks for one hit of a user over /json and returns the status and the body.
func (r *running) ask(t *testing.T, user string) (int, *rlsAnswer) {
	t.Helper()
	return r.call(t, fmt.Sprintf(`{"domain":"shop","descriptors":[{"entries":[{"key":"user","value":%q}]}]}`, user))
}

// call makes a call over /json and returns the status and the body.
func (r *running) call(t *testing.T, body string) (int, *rlsAnswer) {
	t.Helper()
	resp, err := http.Post("http://"+r.http+"/json", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	a := new(rlsAnswer)
	if err := json.NewDecoder(resp.Body).Decode(a); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, a
}

type rlsAnswer struct {
	OverallCode string `json:"overallCode"`
	Statuses    []struct {
		LimitRemaining int `json:"limitRemaining"`
		CurrentLimit   struct {
			RequestsPerUnit int `json:"requestsPerUnit"`
		} `json:"currentLimit"`
	} `json:"statuses"`
	DynamicMetadata map[string]any `json:"dynamicMetadata"`
}

func (r *running) get(t *testing.T, path string) (int, string) {
	t.Helper()
	resp, err := http.Get("http://" + r.http + path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// adasRequest asks for one hit of the user ada.
func adasRequest() *rlsv3.RateLimitRequest {
	return &rlsv3.RateLimitRequest{Domain: "shop", Descriptors: []*rlscommon.RateLimitDescriptor{{
		Entries: []*rlscommon.RateLimitDescriptor_Entry{{Key: "user", Value: "ada"}},
	}}}
}

func TestServe(t *testing.T) {
	r := start(t, "--config", programtest.WriteFile(t, "c.yaml", programtest.TwoPerMinute))
	conn := programtest.DialPlain(t, r.grpc)

	t.Run("both protocols share the buckets", func(t *testing.T) {
		if code, a := r.ask(t, "ada"); code != http.StatusOK || a.Statuses[0].LimitRemaining != 1 {
			t.Errorf("/json: %d, %+v", code, a)
		}
		resp, err := rlsv3.NewRateLimitServiceClient(conn).ShouldRateLimit(t.Context(), adasRequest())
		if err != nil || resp.GetOverallCode() != rlsv3.RateLimitResponse_OK || resp.GetStatuses()[0].GetLimitRemaining() != 0 {
			t.Errorf("gRPC: %v, %v", resp, err)
		}
		if code, a := r.ask(t, "ada"); code != http.StatusTooManyRequests || a.OverallCode != "OVER_LIMIT" {
			t.Errorf("/json: %d, %+v", code, a)
		}
	})
	t.Run("health", func(t *testing.T) {
		for _, name := range []string{"", "ratelimit", "envoy.service.ratelimit.v3.RateLimitService"} {
			h, err := grpc_health_v1.NewHealthClient(conn).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: name})
			if err != nil || h.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
				t.Errorf("%q: %v, %v", name, h, err)
			}
		}
		for _, path := range []string{"/healthz", "/readyz", "/metrics", "/"} {
			if code, body := r.get(t, path); code != http.StatusOK {
				t.Errorf("%s: %d %s", path, code, body)
			}
		}
	})
	t.Run("reflection", func(t *testing.T) {
		stream, err := grpc_reflection_v1.NewServerReflectionClient(conn).ServerReflectionInfo(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		err = stream.Send(&grpc_reflection_v1.ServerReflectionRequest{MessageRequest: &grpc_reflection_v1.ServerReflectionRequest_FileContainingSymbol{
			FileContainingSymbol: "envoy.service.ratelimit.v3.RateLimitService",
		}})
		if err != nil {
			t.Fatal(err)
		}
		resp, err := stream.Recv()
		if err != nil || len(resp.GetFileDescriptorResponse().GetFileDescriptorProto()) == 0 {
			t.Errorf("got %v, %v", resp, err)
		}
	})
	t.Run("explain", func(t *testing.T) {
		code, stdout, stderr := output(t, "explain", "--server", "http://"+r.http, "-o", "json", "shop", "user=ada")
		var x admin.Explanation
		if err := json.Unmarshal([]byte(stdout), &x); code != 0 || err != nil || x.Admitted || x.Rule != "users" || len(x.Limits) != 1 || x.Limits[0].Enough {
			t.Errorf("exit code %d, %v\n%s%s", code, err, stdout, stderr)
		}
	})
	r.stop(command.ErrInterrupted)
	if code := r.wait(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func TestDrain(t *testing.T) {
	r := start(t, "--config", programtest.WriteFile(t, "c.yaml", "drain: 1h\n"+programtest.TwoPerMinute))
	conn := programtest.DialPlain(t, r.grpc)
	r.stop(command.ErrTerminated)
	eventually(t, "not ready", func() bool {
		code, _ := r.get(t, "/readyz")
		return code == http.StatusServiceUnavailable
	})
	h, err := grpc_health_v1.NewHealthClient(conn).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
	if err != nil || h.GetStatus() != grpc_health_v1.HealthCheckResponse_NOT_SERVING {
		t.Errorf("gRPC health: %v, %v", h, err)
	}
	// It reports that it is not ready, and still answers clients that have not
	// noticed.
	if code, _ := r.ask(t, "ada"); code != http.StatusOK {
		t.Errorf("/json while draining: %d", code)
	}
	if _, err := rlsv3.NewRateLimitServiceClient(conn).ShouldRateLimit(t.Context(), adasRequest()); err != nil {
		t.Errorf("gRPC while draining: %v", err)
	}
}

func TestDrainEnds(t *testing.T) {
	r := start(t, "--config", programtest.WriteFile(t, "c.yaml", "drain: 10ms\n"+programtest.TwoPerMinute))
	conn := programtest.DialPlain(t, r.grpc)
	if _, err := rlsv3.NewRateLimitServiceClient(conn).ShouldRateLimit(t.Context(), adasRequest()); err != nil {
		t.Fatal(err)
	}
	r.stop(command.ErrTerminated)
	if code := r.wait(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if _, err := net.DialTimeout("tcp", r.grpc, time.Second); err == nil {
		t.Error("something still listens")
	}
}

func TestReload(t *testing.T) {
	twoPerDay := strings.ReplaceAll(programtest.TwoPerMinute, "2/minute", "2/day") // that nothing is refilled meanwhile
	file := programtest.WriteFile(t, "c.yaml", twoPerDay)
	r := start(t, "--config", file)
	r.ask(t, "ada")
	replace := func(text string) {
		t.Helper()
		next := filepath.Join(filepath.Dir(file), "next")
		if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, file); err != nil {
			t.Fatal(err)
		}
	}
	replace(strings.ReplaceAll(programtest.TwoPerMinute, "2/minute", "10/day"))
	eventually(t, "the new limit", func() bool {
		_, a := r.ask(t, "probe")
		return a.Statuses[0].CurrentLimit.RequestsPerUnit == 10
	})
	if _, a := r.ask(t, "ada"); a.Statuses[0].LimitRemaining != 8 {
		t.Errorf("the use did not survive: %+v, want 8 of 10 left after 2 requests", a)
	}

	replace("domains: [{domain: shop")
	eventually(t, "the error at /readyz", func() bool {
		code, body := r.get(t, "/readyz")
		return code == http.StatusOK && strings.Contains(body, `c.yaml:2: the log has the reason"`) && strings.Contains(body, `"error"`)
	})
	if _, a := r.ask(t, "eve"); a.Statuses[0].CurrentLimit.RequestsPerUnit != 10 {
		t.Errorf("the configuration before is not in force: %+v", a)
	}
	if _, body := r.get(t, "/metrics"); !strings.Contains(body, "ratelimit_config_last_load_successful 0") {
		t.Error("the metric does not say so")
	}

	replace(programtest.TwoPerMinute)
	eventually(t, "the error to go", func() bool {
		_, body := r.get(t, "/readyz")
		return !strings.Contains(body, `"error"`)
	})
}

func TestPortInUse(t *testing.T) {
	r := start(t, "--demo")
	code, _, stderr := output(t, "serve", "--demo", "--grpc-address", r.grpc)
	if code != command.ExitFailure || !strings.Contains(stderr, "server.grpc.address") || !strings.Contains(stderr, "in use") {
		t.Errorf("exit code %d, stderr:\n%s", code, stderr)
	}
}

// Probable mistakes are reported in one line at the start, with the place to read
// them.
func TestWarningsDoNotBuryTheGreeting(t *testing.T) {
	r := start(t, "--config", programtest.WriteFile(t, "warned.yaml", `
domains:
- domain: d
  rules:
  - {name: daily, match: {key: "*"}, entity: "key/{key}", resource: all, limits: {a: 100/day, b: 200/day}, consume: {a: 1, b: 1}}
`))
	log := r.log.String()
	if n := strings.Count(log, "WARN"); n != 1 || !strings.Contains(log, `see="ratelimit check --config `) {
		t.Errorf("got %d warnings:\n%s", n, log)
	}
	r.stop(command.ErrInterrupted)
	if code := <-r.code; code != command.ExitOK {
		t.Errorf("exit code %d", code)
	}
}
