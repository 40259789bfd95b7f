package console_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

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
store: {embedded: {data: data}}
drain: 0s
log: {format: json}
limits: {system: {rpm: 5/hour}}
domains:
- domain: shop
  rules:
  - {name: requests, match: {api_key: "*", model: "*"}, entity: "{api_key}", resource: "{model}", consume: {rpm: hits}}
`

// patience is how long anything may take.
const patience = time.Minute

// service is a running program.
type service struct {
	http, admin string            // addresses
	tokens      map[string]string // by name
}

// startService starts the program with a token for each role of the test.
func startService(t *testing.T) *service {
	t.Helper()
	program, dir := build(t), t.TempDir()
	s := &service{tokens: map[string]string{}}
	names := []string{"ada", "rob", "olga"}
	hashes := make([]any, 0, len(names))
	for _, name := range names {
		token, hash := newToken(t, program)
		s.tokens[name] = token
		hashes = append(hashes, hash)
	}
	if err := os.WriteFile(filepath.Join(dir, "ratelimit.yaml"), fmt.Appendf(nil, config, hashes...), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), program, "serve", "--new-data")
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
				s.http, s.admin = entry.HTTP, entry.Admin
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

// decide asks n times for one hit of a key, and returns how often it was admitted.
func (s *service) decide(ctx context.Context, n int, key string) (int, error) {
	admitted := 0
	for range n {
		body := fmt.Sprintf(`{"domain":"shop","descriptors":[{"entries":[{"key":"api_key","value":%q},{"key":"model","value":"gpt-4"}]}]}`, key)
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

// put replaces the limits of a resource, as another operator would.
func (s *service) put(ctx context.Context, body string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, "http://"+s.admin+"/v1/namespaces/default/limits/resources/gpt-4", strings.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+s.tokens["ada"])
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", response.StatusCode)
	}
	return nil
}
