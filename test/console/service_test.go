package console_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
)

// config is that of a small company: %s are the hashes of tokens and the store.
const config = `
server:
  grpc: {address: "127.0.0.1:0"}
  http: {address: "127.0.0.1:0"}
  admin:
    address: "127.0.0.1:0"
    tokens:
      ada: {role: administer, hash: "%s"}
      rob: {role: read, hash: "%s"}
      olga: {role: operate, hash: "%s"}
%s
drain: 0s
decision: {timeout: 10s}
log: {format: json}
limits:
  system: {rpm: 5/hour, tpd: {rate: 2_000_000/day, budget: {day: 1_000_000}}}
  resources: {gpt-4: {rpm.shadow: 4/hour}}
  entities:
    org/acme: {limits: {_default_: {rpm: 5000/hour}}}
    project/search: {parent: org/acme, cascade: true, limits: {gpt-4: {rpm: 400/hour}}}
    key/s-1: {parent: project/search, cascade: true}
    "trial/*": {plan: free}
    "pupil/*": {limits: {_default_: {lessons: {quota: 4/month, resets: calendar}}}}
plans:
  free: {rpm: 3/hour}
domains:
- domain: shop
  rules:
  - {name: requests, match: {api_key: "*", model: "*"}, entity: "key/{api_key}", resource: "{model}", consume: {rpm: hits, tpd: 400}}
  - {name: trial, match: {trial: "*"}, entity: "trial/{trial}", resource: web, consume: {rpm: hits}}
  - {name: lessons, match: {pupil: "*"}, entity: "pupil/{pupil}", resource: web, consume: {lessons: hits}}
  - {name: gated, match: {gated: "*"}, entity: "gate/{gated}", resource: web, limits: {rpm: 2/hour}, consume: {rpm: hits}}
  - {name: uploads, match: {upload: "*"}, entity: "key/{upload}", resource: uploads, limits: {mb: 500/hour}, consume: {mb: hits}}
`

// patience is how long anything may take.
const patience = time.Minute

// service is a running program.
type service struct {
	file        string            // its configuration
	http, admin string            // addresses
	tokens      map[string]string // by name
	hashes      []any             // of the tokens
	aggregator  string            // what the page says about it
}

// stores are those of the tests, with the text of their configuration.
var stores = map[string]func(*testing.T) string{
	"embedded": func(*testing.T) string { return "store: {embedded: {data: data}}" },
	"valkey": func(t *testing.T) string {
		return fmt.Sprintf("store: {type: valkey, valkey: {addresses: [%q], create: true}}", startValkey(t))
	},
	"dynamodb": func(t *testing.T) string {
		return fmt.Sprintf("store: {type: dynamodb, dynamodb: {table: %s, endpoint: %q, create_table: true}}", dynamotest.TableName(t), dynamotest.Start(t).URL)
	},
}

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }

// startService starts the program with a token for each role of the test, on a store.
func startService(t *testing.T, store string) *service {
	t.Helper()
	program := build(t)
	s := startWith(t, program, config, store, nil)
	if s.aggregator = "not needed"; strings.Contains(store, "type: dynamodb") {
		startAggregator(t, program, s.file)
		s.aggregator = "up to date"
	}
	return s
}

// startAggregator starts the program that counts the usage of a table, by the file of a service.
func startAggregator(t *testing.T, program, file string) {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), program, "aggregate", "--config", file, "--http-address", "127.0.0.1:0", "--flush", "100ms")
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("the aggregator says:\n%s", &log)
		}
	})
}

// startWith starts a program with a configuration, and with the tokens of another service unless that is nil.
func startWith(t *testing.T, program, config, store string, other *service) *service {
	t.Helper()
	dir, s := t.TempDir(), other
	if s == nil {
		s = &service{tokens: map[string]string{}}
		for _, name := range []string{"ada", "rob", "olga"} {
			token, hash := newToken(t, program)
			s.tokens[name], s.hashes = token, append(s.hashes, hash)
		}
	}
	s = &service{file: filepath.Join(dir, "ratelimit.yaml"), tokens: s.tokens, hashes: s.hashes}
	hashes := slices.Clone(s.hashes)
	hashes = append(hashes, store)
	if err := os.WriteFile(s.file, fmt.Appendf(nil, config, hashes...), 0o600); err != nil {
		t.Fatal(err)
	}
	arguments := []string{"serve"}
	if strings.Contains(store, "data:") {
		arguments = append(arguments, "--new-data")
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), program, arguments...)
	cmd.Dir = dir
	out, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	ready, ended := make(chan struct{}), make(chan string, 1)
	go func() {
		var all strings.Builder
		for lines := bufio.NewScanner(out); lines.Scan(); {
			all.WriteString(lines.Text() + "\n")
			var entry struct {
				Msg   string `json:"msg"`
				HTTP  string `json:"http"`
				Admin string `json:"admin"`
			}
			if json.Unmarshal(lines.Bytes(), &entry) == nil && entry.Msg == "serving" {
				s.http = entry.HTTP
				s.admin, _, _ = strings.Cut(entry.Admin, ",") // the socket comes after
				close(ready)
			}
		}
		_ = cmd.Wait()
		ended <- all.String()
	}()
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-ended })
	select {
	case <-ready:
	case log := <-ended:
		ended <- ""
		t.Fatalf("the program ended:\n%s", log)
	case <-time.After(patience):
		t.Fatalf("the program did not start within %v", patience)
	}
	return s
}

// build builds the program, unless RATELIMIT_PROGRAM names one to test.
func build(t *testing.T) string {
	t.Helper()
	if program := os.Getenv("RATELIMIT_PROGRAM"); program != "" {
		return program
	}
	program := filepath.Join(t.TempDir(), "ratelimit")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./cmd/ratelimit")
	cmd.Dir = filepath.Join("..", "..")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// newToken has the program make a token.
func newToken(t *testing.T, program string) (token, hash string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), program, "token").Output()
	if err != nil {
		t.Fatal(err)
	}
	for word := range strings.FieldsSeq(string(out)) {
		word = strings.Trim(word, `",;}`)
		if strings.HasPrefix(word, "rlt_") {
			token = word
		}
		if strings.HasPrefix(word, "sha256:") {
			hash = word
		}
	}
	if token == "" || hash == "" {
		t.Fatalf("ratelimit token says %s", out)
	}
	return token, hash
}

// startValkey starts a Valkey or Redis server, and returns its address.
func startValkey(t *testing.T) string {
	t.Helper()
	program, err := exec.LookPath("valkey-server")
	if err != nil {
		program, err = exec.LookPath("redis-server")
	}
	if err != nil {
		program = cached(t, "valkey", "valkey-server")
	}
	var listener net.ListenConfig
	l, err := listener.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_, port, _ := net.SplitHostPort(address) // it is one
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), program, "--port", port, "--dir", t.TempDir(), "--save", "", "--maxmemory-policy", "noeviction")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for deadline := time.Now().Add(patience); ; {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
		if err == nil {
			_ = conn.Close()
			return address
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// decide asks n times for one hit of a key, and returns how often it was admitted.
func (s *service) decide(ctx context.Context, n int, key string) (int, error) {
	return s.call(ctx, n, map[string]string{"key": "api_key", "value": key}, map[string]string{"key": "model", "value": "gpt-4"})
}

// call asks n times for a hit of a descriptor, and returns how many are admitted.
func (s *service) call(ctx context.Context, n int, entries ...map[string]string) (int, error) {
	admitted := 0
	for range n {
		text, err := json.Marshal(entries)
		if err != nil {
			return 0, err
		}
		body := fmt.Sprintf(`{"domain":"shop","descriptors":[{"entries":%s}]}`, text)
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.http+"/json", strings.NewReader(body))
		if err != nil {
			return 0, err
		}
		request.Header.Set("Content-Type", "application/json")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return 0, err
		}
		_ = response.Body.Close()
		if response.StatusCode == http.StatusOK {
			admitted++
		}
	}
	return admitted, nil
}

// put replaces the limits of a level, as another operator would.
func (s *service) put(ctx context.Context, level, body string) error {
	return s.change(ctx, "default/limits/"+level+"?allowNew=true", body)
}

// change makes a change by PUT, as another operator would. "" is no body.
func (s *service) change(ctx context.Context, path, body string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, "http://"+s.admin+"/v1/namespaces/"+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	request.Header.Set("Authorization", "Bearer "+s.tokens["ada"])
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK && response.StatusCode != http.StatusCreated {
		return fmt.Errorf("status %d", response.StatusCode)
	}
	return nil
}
