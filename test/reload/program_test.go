package reload_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/test/envoytest"
)

// patience bounds every wait of these tests.
const patience = 30 * time.Second

// program is a running `ratelimit serve`, and the directory of its configuration.
type program struct {
	t    *testing.T
	dir  string
	cmd  *exec.Cmd
	http string
	asks int

	mu  sync.Mutex
	log bytes.Buffer
}

// Write implements io.Writer: it keeps the log.
func (p *program) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.Write(b)
}

func (p *program) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// limited is a domain with one request a day for each key.
func limited(domain string) string {
	return "domain: " + domain + "\nrules:\n- {match: {k: \"*\"}, entity: \"" + domain + "/{k}\", resource: r, limits: {n: 1/day}, consume: {n: 1}}\n"
}

// listed is a configuration with such domains.
func listed(domains ...string) string {
	var text strings.Builder
	text.WriteString("domains:\n")
	for _, d := range domains {
		text.WriteString("- " + strings.ReplaceAll(strings.TrimSpace(limited(d)), "\n", "\n  ") + "\n")
	}
	return text.String()
}

// start writes files and starts the program with ratelimit.yaml.
func start(t *testing.T, files map[string]string) *program {
	t.Helper()
	p := &program{t: t, dir: t.TempDir()}
	for name, text := range files {
		p.write(name, text)
	}
	p.serve()
	return p
}

func (p *program) serve() {
	p.t.Helper()
	p.cmd = exec.CommandContext(context.WithoutCancel(p.t.Context()), os.Getenv(envoytest.ProgramVariable), "serve", "--config", p.path("ratelimit.yaml"),
		"--grpc-address", "127.0.0.1:0", "--http-address", "127.0.0.1:0")
	p.cmd.Stderr = p
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = p.cmd.Wait() // says that it was killed
	}()
	p.t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // fails if it has ended
		<-ended
		if p.t.Failed() {
			p.t.Logf("log of the program:\n%s", p.said())
		}
	})
	p.until("it serves", func() bool {
		for line := range strings.Lines(p.said()) {
			if _, rest, ok := strings.Cut(line, "msg=serving "); ok {
				_, rest, _ = strings.Cut(rest, " http=")
				p.http, _, _ = strings.Cut(rest, " ")
				return true
			}
		}
		return false
	})
}

func (p *program) until(what string, ok func() bool) {
	p.t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			p.t.Fatalf("waited in vain until %s", what)
		}
	}
}

// untilSaid waits until the log has a text that many times.
func (p *program) untilSaid(text string, times int) {
	p.t.Helper()
	p.until(fmt.Sprintf("it says %q %d times", text, times), func() bool { return strings.Count(p.said(), text) >= times })
}

// get returns the body at a path of the HTTP side, and posts one where there is any.
func (p *program) get(path, body string) string {
	p.t.Helper()
	method := http.MethodGet
	if body != "" {
		method = http.MethodPost
	}
	request, err := http.NewRequestWithContext(p.t.Context(), method, "http://"+p.http+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return string(text)
}

// admits returns how many of two requests with a key that was not used before a domain
// admits: 1 when its limit is in force, 2 when there is none.
func (p *program) admits(domain string) int {
	p.t.Helper()
	p.asks++
	admitted := 0
	for range 2 {
		var answer struct {
			OverallCode string `json:"overallCode"`
		}
		text := p.get("/json", fmt.Sprintf(`{"domain":%q,"descriptors":[{"entries":[{"key":"k","value":"%d"}]}]}`, domain, p.asks))
		if err := json.Unmarshal([]byte(text), &answer); err != nil {
			p.t.Fatal(err)
		}
		if answer.OverallCode == "OK" {
			admitted++
		}
	}
	return admitted
}

// mustLimit wants the limits of domains to be in force.
func (p *program) mustLimit(domains ...string) {
	p.t.Helper()
	for _, d := range domains {
		if n := p.admits(d); n != 1 {
			p.t.Errorf("%s admits %d of 2 requests, want 1", d, n)
		}
	}
}

func (p *program) path(name string) string { return filepath.Join(p.dir, name) }

func (p *program) must(errs ...error) {
	p.t.Helper()
	if err := errors.Join(errs...); err != nil {
		p.t.Fatal(err)
	}
}

// write writes a file in place.
func (p *program) write(name, text string) {
	p.t.Helper()
	p.must(os.MkdirAll(filepath.Dir(p.path(name)), 0o700), os.WriteFile(p.path(name), []byte(text), 0o600))
}

// replace moves a file into its place.
func (p *program) replace(name, text string) {
	p.t.Helper()
	p.write(name+".new", text)
	p.must(os.Rename(p.path(name+".new"), p.path(name)))
}

func (p *program) hangUp() {
	p.t.Helper()
	p.must(p.cmd.Process.Signal(syscall.SIGHUP))
}
