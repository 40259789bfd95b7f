package envoytest

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// Service is a running `ratelimit serve`.
type Service struct {
	GRPC    string // host:port
	HTTP    string // host:port
	process *process
}

// programVariable names the environment variable with the program to test.
const programVariable = "RATELIMIT_PROGRAM"

// StartService starts `ratelimit serve` with a configuration file and waits until
// it is ready. grpc and http are the addresses to listen on; "" chooses.
func StartService(tb testing.TB, config, grpc, http string) *Service {
	tb.Helper()
	if grpc == "" {
		grpc = FreeAddress(tb)
	}
	if http == "" {
		http = FreeAddress(tb)
	}
	s := &Service{GRPC: grpc, HTTP: http}
	s.process = startProcess(tb, "ratelimit", os.Getenv(programVariable),
		"serve", "--config", config, "--grpc-address", grpc, "--http-address", http)
	client := newClient(tb)
	Await(tb, "the service is ready", func() error {
		if !s.process.running() {
			tb.Fatalf("ratelimit ended: %v", s.process.err)
		}
		return ready(client, http)
	})
	return s
}

// Stop sends SIGTERM and waits until the service is gone.
func (s *Service) Stop(tb testing.TB) {
	tb.Helper()
	s.process.stop(tb)
	if s.process.err != nil {
		tb.Errorf("ratelimit after SIGTERM: got %v, want exit code 0", s.process.err)
	}
}

// Kill ends the service at once, as a crash would.
func (s *Service) Kill() { s.process.kill() }

// BuildProgram builds the ratelimit program into dir and has [StartService] start
// it; with the race detector when the tests have it. It is for TestMain.
func BuildProgram(ctx context.Context, dir string) error {
	root, err := Root()
	if err != nil {
		return err
	}
	program := filepath.Join(dir, "ratelimit")
	args := []string{"build", "-o", program}
	if raceDetector {
		args = append(args, "-race")
	}
	build := exec.CommandContext(ctx, "go", append(args, "./cmd/ratelimit")...)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build ratelimit: %w\n%s", err, out)
	}
	return os.Setenv(programVariable, program)
}

// ready asks a service whether it is.
func ready(client *http.Client, address string) error {
	response, err := client.Get("http://" + address + "/readyz")
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("/readyz: got %s, want 200", response.Status)
	}
	return nil
}

// newClient returns an HTTP client of the test's own, with a timeout on every call.
func newClient(tb testing.TB) *http.Client {
	tb.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 100}
	tb.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 5 * time.Second}
}
