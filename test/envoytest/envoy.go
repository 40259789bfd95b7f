package envoytest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// Envoy is a running Envoy.
type Envoy struct {
	Address string // of its listener, host:port
	admin   string
	process *process
	http    *http.Client
	streams *http.Client // without a timeout: a request ends with its context
}

// Ports says which addresses take the place of a port in an Envoy file. The line
// of a port with several addresses, an endpoint, is repeated for each.
type Ports map[int][]string

// portPattern finds the lines of an Envoy file that have a port.
var portPattern = regexp.MustCompile(`(?m)^.*port_value: (\d+).*\n`)

// The ports of the files in examples/envoy that are Envoy's own.
const (
	listenerPort = 10000
	adminPort    = 9901
)

// Need leaves a test out of a run with -short, and fails it where Envoy is missing.
func Need(tb testing.TB) {
	tb.Helper()
	if testing.Short() {
		tb.Skip("starts Envoy")
	}
	binary(tb)
}

// StartEnvoy starts Envoy with file and waits until it serves. Envoy chooses the
// ports of its listener (10000) and its admin endpoint (9901) itself. Every other
// port in the file must be in ports, and every one there in the file.
func StartEnvoy(tb testing.TB, file string, ports Ports) *Envoy {
	tb.Helper()
	dir := tb.TempDir()
	adminFile := filepath.Join(dir, "admin")
	configFile := filepath.Join(dir, "envoy.yaml")
	if err := os.WriteFile(configFile, withPorts(tb, file, ports), 0o600); err != nil {
		tb.Fatal(err)
	}
	e := &Envoy{http: newClient(tb), streams: newClient(tb)}
	e.streams.Timeout = 0
	e.process = startProcess(tb, "envoy", binary(tb), "--config-path", configFile,
		"--admin-address-path", adminFile, "--disable-hot-restart", "--concurrency", "2", "--log-level", "warning")
	Await(tb, "Envoy is ready", func() error {
		if !e.process.running() {
			tb.Fatalf("Envoy ended: %v", e.process.err)
		}
		admin, err := os.ReadFile(adminFile)
		if err != nil {
			return err
		}
		e.admin = string(admin)
		if _, err := e.get("/ready"); err != nil {
			return err
		}
		e.Address, err = e.listener()
		return err
	})
	return e
}

// Stats returns Envoy's counters and gauges whose names begin with prefix, such as
// "cluster.upstream.ratelimit."; one that was never counted may be absent, as 0.
func (e *Envoy) Stats(tb testing.TB, prefix string) map[string]int64 {
	tb.Helper()
	body, err := e.get("/stats?filter=^" + regexp.QuoteMeta(prefix))
	if err != nil {
		tb.Fatalf("stats of Envoy: %v", err)
	}
	stats := make(map[string]int64)
	for line := range strings.Lines(string(body)) {
		name, value, found := strings.Cut(strings.TrimSpace(line), ": ")
		if n, err := strconv.ParseInt(value, 10, 64); found && err == nil { // histograms are text
			stats[name] = n
		}
	}
	return stats
}

// Answer is the answer that a client got.
type Answer struct {
	Code   int
	Header http.Header
	Body   []byte
}

// Get sends a GET through Envoy with the given headers.
func (e *Envoy) Get(tb testing.TB, path string, header http.Header) Answer {
	tb.Helper()
	answer, err := e.Try(path, header)
	if err != nil {
		tb.Fatal(err)
	}
	return answer
}

// Try is Get for any goroutine. It takes at most 5 seconds.
func (e *Envoy) Try(path string, header http.Header) (Answer, error) {
	r, err := http.NewRequest(http.MethodGet, "http://"+e.Address+path, http.NoBody)
	if err != nil {
		return Answer{}, err
	}
	if header != nil {
		r.Header = header.Clone()
		r.Host = header.Get("Host") // "" = Envoy's address
	}
	response, err := e.http.Do(r)
	if err != nil {
		return Answer{}, err
	}
	defer func() { _ = response.Body.Close() }()
	return Read(response)
}

// Post sends a POST with a body of JSON through Envoy and returns the answer as it
// comes, which the caller reads and closes. It is for any goroutine, and ends with
// ctx.
func (e *Envoy) Post(ctx context.Context, path, body string, header http.Header) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+e.Address+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	for name, values := range header {
		r.Header[http.CanonicalHeaderKey(name)] = values
	}
	r.Host = header.Get("Host") // "" = Envoy's address
	return e.streams.Do(r)
}

// Read reads an answer to its end; the caller closes it. It fails for one that breaks
// off.
func Read(response *http.Response) (Answer, error) {
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return Answer{}, fmt.Errorf("read the answer to %s: %w", response.Request.URL.Path, err)
	}
	return Answer{Code: response.StatusCode, Header: response.Header, Body: body}, nil
}

// listener returns the address that Envoy chose for its listener: the only one, or the
// one that is called gateway.
func (e *Envoy) listener() (string, error) {
	body, err := e.get("/listeners?format=json")
	if err != nil {
		return "", err
	}
	var listeners struct {
		Statuses []struct {
			Name    string `json:"name"`
			Address struct {
				Socket struct {
					Address string `json:"address"`
					Port    int    `json:"port_value"`
				} `json:"socket_address"`
			} `json:"local_address"`
		} `json:"listener_statuses"`
	}
	if err := json.Unmarshal(body, &listeners); err != nil {
		return "", err
	}
	for _, l := range listeners.Statuses {
		if len(listeners.Statuses) == 1 || l.Name == "gateway" {
			return net.JoinHostPort(l.Address.Socket.Address, strconv.Itoa(l.Address.Socket.Port)), nil
		}
	}
	return "", fmt.Errorf("Envoy has %d listeners, want 1, or one called gateway", len(listeners.Statuses))
}

// get asks Envoy's admin endpoint.
func (e *Envoy) get(path string) ([]byte, error) {
	response, err := e.http.Get("http://" + e.admin + path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET %s: %s: %s", path, response.Status, body)
	}
	return body, nil
}

// withPorts returns the Envoy file with other ports.
func withPorts(tb testing.TB, file string, ports Ports) []byte {
	tb.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	used := make(map[string]bool)
	text = portPattern.ReplaceAllFunc(text, func(line []byte) []byte {
		port := string(portPattern.FindSubmatch(line)[1])
		used[port] = true
		var lines bytes.Buffer
		for _, other := range substitutes(tb, port, ports) {
			lines.Write(bytes.Replace(line, []byte("port_value: "+port), []byte("port_value: "+other), 1))
		}
		return lines.Bytes()
	})
	for port := range ports {
		if !used[strconv.Itoa(port)] {
			tb.Fatalf("%s: has no port_value: %d", file, port)
		}
	}
	return text
}

// substitutes returns the ports that take the place of port.
func substitutes(tb testing.TB, port string, ports Ports) []string {
	tb.Helper()
	n, err := strconv.Atoi(port)
	if err != nil {
		tb.Fatalf("a port of an Envoy file: %v", err)
	}
	if n == listenerPort || n == adminPort {
		return []string{"0"} // Envoy chooses
	}
	others := make([]string, 0, len(ports[n]))
	for _, address := range ports[n] {
		_, other, err := net.SplitHostPort(address)
		if err != nil {
			tb.Fatalf("address for port %d: %v", n, err)
		}
		others = append(others, other)
	}
	if len(others) == 0 {
		tb.Fatalf("the test gives no address for port %d", n)
	}
	return others
}

// binary returns the path of the Envoy program.
func binary(tb testing.TB) string {
	tb.Helper()
	path := os.Getenv("RATELIMIT_ENVOY")
	if path == "" {
		root, err := Root()
		if err != nil {
			tb.Fatal(err)
		}
		path = filepath.Join(root, ".cache", "envoy", "bin", "envoy")
	}
	if _, err := os.Stat(path); err != nil {
		tb.Fatalf("no Envoy: %v; `make tools` installs it, RATELIMIT_ENVOY names another one, -short leaves these tests out", err)
	}
	return path
}
