package envoytest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/test/kit/proctest"
)

// Service is a running `ratelimit serve`.
type Service struct {
	GRPC    string // host:port
	HTTP    string // host:port
	process *process
	http    *http.Client
}

// StartService starts `ratelimit serve` with a configuration file and waits until
// it is ready. grpc and http are the addresses to listen on; "" chooses.
func StartService(tb testing.TB, config, grpc, http string) *Service {
	tb.Helper()
	if grpc == "" {
		grpc = proctest.FreeAddress(tb)
	}
	if http == "" {
		http = proctest.FreeAddress(tb)
	}
	return startService(tb, grpc, http, os.Getenv(ProgramVariable), "serve", "--config", config, "--grpc-address", grpc, "--http-address", http, "--admin-address", "off")
}

// StartServiceWith is StartService with more variables of the environment, such as "A=b".
func StartServiceWith(tb testing.TB, config string, variables ...string) *Service {
	tb.Helper()
	grpc, http := proctest.FreeAddress(tb), proctest.FreeAddress(tb)
	return startService(tb, grpc, http, "env", append(variables, os.Getenv(ProgramVariable), "serve", "--config", config,
		"--grpc-address", grpc, "--http-address", http, "--admin-address", "off")...)
}

// StartLimitador starts the program by the name limitador-server, as the image has it, with a file of limits.
func StartLimitador(tb testing.TB, limits string) *Service {
	tb.Helper()
	program := filepath.Join(tb.TempDir(), "limitador-server")
	if err := os.Symlink(os.Getenv(ProgramVariable), program); err != nil {
		tb.Fatal(err)
	}
	grpc, http := proctest.FreeAddress(tb), proctest.FreeAddress(tb)
	host, rls, err := net.SplitHostPort(grpc)
	if err != nil {
		tb.Fatal(err)
	}
	_, port, err := net.SplitHostPort(http)
	if err != nil {
		tb.Fatal(err)
	}
	return startService(tb, grpc, http, program, "--rls-ip", host, "--http-ip", host, "--rls-port", rls, "--http-port", port, limits, "memory")
}

// startService starts a program that listens at the addresses, and waits until it is ready.
func startService(tb testing.TB, grpc, http, program string, args ...string) *Service {
	tb.Helper()
	client := newClient(tb)
	s := &Service{GRPC: grpc, HTTP: http, http: client}
	s.process = startProcess(tb, "ratelimit", program, args...)
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

// Available asks a service for the balance of a limit for a descriptor, and takes
// nothing. It is in tokens with up to three decimals, such as "-3.25". A limit of several resources has its own before
// it: budget/usd.
func (s *Service) Available(domain, limit string, entries ...Entry) (string, error) {
	question, err := json.Marshal(map[string]any{"domain": domain, "entries": entries, "hits": 0})
	if err != nil {
		return "", err
	}
	response, err := s.http.Post("http://"+s.HTTP+"/v1/explain", "application/json", bytes.NewReader(question))
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := Read(response)
	if err != nil {
		return "", err
	}
	var explanation struct {
		Limits []struct {
			Resource  string `json:"resource"`
			Limit     string `json:"limit"`
			Available string `json:"available"`
		} `json:"limits"`
	}
	if err := json.Unmarshal(answer.Body, &explanation); err != nil {
		return "", err
	}
	for _, l := range explanation.Limits {
		if l.Limit == limit || l.Resource+"/"+l.Limit == limit {
			return l.Available, nil
		}
	}
	return "", fmt.Errorf("/v1/explain of %v: got %d, %s, want the limit %s", entries, answer.Code, answer.Body, limit)
}

// Entry is a key and a value of a descriptor.
type Entry struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// Metrics returns the metrics of a service, by series, such as
// `ratelimit_degraded_total{policy="allow"}`; a series that was never counted is
// absent.
func (s *Service) Metrics() (map[string]float64, error) {
	response, err := s.http.Get("http://" + s.HTTP + "/metrics")
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := Read(response)
	if err != nil {
		return nil, err
	}
	metrics := make(map[string]float64)
	for line := range strings.Lines(string(answer.Body)) {
		series, value, found := cutLast(strings.TrimSpace(line), " ")
		if n, err := strconv.ParseFloat(value, 64); found && err == nil {
			metrics[series] = n
		}
	}
	return metrics, nil
}

// cutLast is strings.Cut at the last separator.
func cutLast(s, separator string) (before, after string, found bool) {
	i := strings.LastIndex(s, separator)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(separator):], true
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
