package reference_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/test/envoytest"
	"github.com/ratelimit/ratelimit/test/kit/proctest"
)

// runScript runs an integration script against a fresh program behind a fresh Envoy. Names of containers in both are
// replaced by addresses.
func runScript(t *testing.T, p programs, script string) error {
	t.Helper()
	mock := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) }))
	defer mock.Close()
	root := t.TempDir()
	dir := filepath.Join(root, "ratelimit", "config")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, name := range []string{"example.yaml", "config.yaml"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(read(t, filepath.Join(p.module, "examples", "ratelimit", "config", name))), 0o600); err != nil {
			return err
		}
	}
	address, metrics := proctest.FreeAddress(t), proctest.FreeAddress(t)
	startWith(t, program(t), address, map[string]string{
		"RUNTIME_ROOT": root, "RUNTIME_SUBDIRECTORY": "ratelimit", "RUNTIME_WATCH_ROOT": "false", "LOG_LEVEL": "warn", "HOST": "127.0.0.1", "GRPC_HOST": "127.0.0.1",
		"PORT": port(t, proctest.FreeAddress(t)), "GRPC_PORT": port(t, address), "USE_PROMETHEUS": "true", "PROMETHEUS_ADDR": metrics,
	})
	gateway := strings.NewReplacer("address: ratelimit", "address: 127.0.0.1", "address: envoy-mock", "address: 127.0.0.1", "0.0.0.0", "127.0.0.1", "port_value: 8888", "port_value: 10000",
		"port_value: 8001", "port_value: 9901", "domain: rl", "domain: rl\n                      timeout: 1s").Replace(read(t, filepath.Join(p.module, "examples", "envoy", "proxy.yaml")))
	file := filepath.Join(t.TempDir(), "envoy.yaml")
	if err := os.WriteFile(file, []byte(gateway), 0o600); err != nil {
		return err
	}
	envoy := envoytest.StartEnvoy(t, file, envoytest.Ports{8081: {address}, 9999: {mock.Listener.Addr().String()}})
	text := strings.NewReplacer("envoy-proxy:8888", envoy.Address, "statsd:9102", metrics, "sleep 5", "sleep 0.1").Replace(read(t, script))
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	out, err := exec.CommandContext(ctx, "bash", "-c", text).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// check reports whether the program reads a file of rules.
func check(t *testing.T, file string) bool {
	t.Helper()
	return exec.CommandContext(t.Context(), program(t), "check", "--rules", file).Run() == nil
}
