package reference_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/ratelimit/ratelimit/test/envoytest"
	"github.com/ratelimit/ratelimit/test/kit/proctest"
	"github.com/ratelimit/ratelimit/test/kit/valkeytest"
)

// The other service, as a module of Go.
const (
	modulePath    = "github.com/envoyproxy/ratelimit"
	moduleVersion = "v1.4.1-0.20260122083618-3fb702589d36"
)

// programs are the built programs of the other service, and the directory of its module.
type programs struct{ service, check, module string }

// build builds the other service of its module.
func build(t *testing.T) programs {
	t.Helper()
	bin := t.TempDir()
	run := func(args ...string) []byte {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = bin // outside of any module
		cmd.Env = append(os.Environ(), "GOBIN="+bin, "GOFLAGS=")
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, &stderr)
		}
		return out
	}
	run("install", modulePath+"/src/service_cmd@"+moduleVersion, modulePath+"/src/config_check_cmd@"+moduleVersion)
	var module struct {
		Dir string `json:"Dir"`
	}
	if err := json.Unmarshal(run("mod", "download", "-json", modulePath+"@"+moduleVersion), &module); err != nil {
		t.Fatal(err)
	}
	return programs{service: filepath.Join(bin, "service_cmd"), check: filepath.Join(bin, "config_check_cmd"), module: module.Dir}
}

// service is a running one.
type service struct {
	rls rlsv3.RateLimitServiceClient
	log *bytes.Buffer
	pid int // of the program

	answered bool
}

// startWith starts a program with variables of its environment, which say where it listens, and waits until it answers.
func startWith(t *testing.T, program string, address string, env map[string]string) *service {
	t.Helper()
	s := &service{log: new(bytes.Buffer)}
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, program)
	cmd.Dir = t.TempDir()
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.Env = append(cmd.Env, "XDG_RUNTIME_DIR="+t.TempDir())
	cmd.Stdout, cmd.Stderr = s.log, s.log
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.pid = cmd.Process.Pid
	t.Cleanup(func() {
		stop()
		_ = cmd.Wait() // it was ended by a signal
		if !s.answered {
			t.Logf("%s:\n%s", filepath.Base(program), s.log)
		}
	})
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	s.rls = rlsv3.NewRateLimitServiceClient(conn)
	envoytest.Await(t, "an answer of "+filepath.Base(program), func() error {
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		_, err := (&testCall{Call: "nobody-has-this-domain a=b"}).ask(ctx, t, s)
		s.answered = err == nil
		return err
	})
	return s
}

// ask asks a service a call.
func (c *testCall) ask(ctx context.Context, t *testing.T, s *service) (*rlsv3.RateLimitResponse, error) {
	t.Helper()
	return s.rls.ShouldRateLimit(ctx, c.request(t))
}

// startBoth starts both services with the same variables and files, and returns the other one and ours.
func startBoth(t *testing.T, p programs, rules string, more map[string]string) (there, here *service) {
	t.Helper()
	root := t.TempDir()
	dir := filepath.Join(root, "ratelimit", "config")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "rules.yaml"), []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	server := valkeytest.Start(t)
	of := func(address string) map[string]string { return variables(t, root, server.Address, address, more) }
	thereAt, hereAt := proctest.FreeAddress(t), proctest.FreeAddress(t)
	return startWith(t, p.service, thereAt, of(thereAt)), startWith(t, program(t), hereAt, of(hereAt))
}

// variables are those of the environment of either service, on a server of Valkey or Redis.
func variables(t *testing.T, root, server, address string, more map[string]string) map[string]string {
	t.Helper()
	env := map[string]string{
		"RUNTIME_ROOT": root, "RUNTIME_SUBDIRECTORY": "ratelimit", "RUNTIME_WATCH_ROOT": "false", "RUNTIME_IGNOREDOTFILES": "true",
		"REDIS_SOCKET_TYPE": "tcp", "REDIS_URL": server, "USE_STATSD": "false", "DISABLE_STATS": "true", "LOG_LEVEL": "warn", "HOST": "127.0.0.1", "GRPC_HOST": "127.0.0.1", "DEBUG_HOST": "127.0.0.1",
		"PORT": port(t, proctest.FreeAddress(t)), "GRPC_PORT": port(t, address), "DEBUG_PORT": port(t, proctest.FreeAddress(t)),
	}
	maps.Copy(env, more)
	return env
}

func port(t *testing.T, address string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// program returns the built program of ours.
func program(t *testing.T) string {
	t.Helper()
	path := os.Getenv(envoytest.ProgramVariable)
	if path == "" {
		t.Fatal(fmt.Errorf("%s does not name the program: run `bash scripts/programs.sh` before the test", envoytest.ProgramVariable))
	}
	return path
}
