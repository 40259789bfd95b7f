package durable_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/test/envoytest"
)

// patience is how long the program may take to start and to stop.
const patience = 20 * time.Second

// rules are the buckets of these tests. Nothing is admitted while the store cannot say.
const rules = `
decision: {timeout: 1s, on_unavailable: deny}
drain: 0s
log: {format: json}
domains:
- domain: d
  rules:
  - {match: {hot: "*"}, entity: "hot/{hot}", resource: r, limits: {n: {rate: 3000/second, burst: 6000}}, consume: {n: hits}}
  - {match: {slow: "*"}, entity: "slow/{slow}", resource: r, limits: {n: {rate: 60/minute, burst: 300}}, consume: {n: hits}}
  - {match: {small: "*"}, entity: "small/{small}", resource: r, limits: {n: 3/7s}, consume: {n: hits}}
  - {match: {large: "*"}, entity: "large/{large}", resource: r, limits: {n: {rate: 1000000/second, burst: 100000000}}, consume: {n: hits}}
  - {match: {two: "*"}, entity: "two/{two}", resource: r, limits: {n: 40/second, m: {rate: 100/minute, burst: 500}}, consume: {n: 1, m: hits}}
  - {match: {ledger: "*"}, entity: "ledger/{ledger}", resource: r, limits: {n: {rate: 1/day, burst: 10000000}}, consume: {n: hits}}
  - {match: {debt: "*"}, entity: "ledger/{debt}", resource: debt, limits: {n: {rate: 1/day, burst: 1000}}, consume: {n: hits}, overdraw: true}
  - {match: {work: "*"}, entity: "work/{work}", resource: r, limits: {n: {rate: 600/second, burst: 20000}}, reserve: {n: hits}}
  - {match: {quota: "*"}, entity: "quota/{quota}", resource: r, limits: {n: 20000/month calendar}, consume: {n: hits}}
  - {match: {slots: "*"}, entity: "slots/{slots}", resource: r, limits: {n: {in_flight: 4, max_time: 10s}}, consume: {n: 1}}
  - {match: {reservation_id: "*"}, settle: {n: hits}}
`

// program is a life of `ratelimit serve --data`.
type program struct {
	cmd  *exec.Cmd
	grpc string
	http string

	ready  chan struct{} // closed when it answers
	exited chan struct{} // closed when it has gone; err is set then
	err    error

	mu  sync.Mutex
	log []entry
	raw strings.Builder // all it wrote
}

// entry is a line of the log.
type entry struct {
	Level   string `json:"level"`
	Message string `json:"msg"`
	Error   string `json:"error"`
	GRPC    string `json:"grpc"`
	HTTP    string `json:"http"`
	Blocks  int    `json:"blocks"`
	Tokens  int64  `json:"tokens_at_most"`
}

const notInOrder = "unclean shutdown: tokens in open blocks are forfeited"

// launch starts the program, on a directory and with a configuration, and does not wait
// for it. It is gone at the end of the test. change changes how it is started.
func launch(t *testing.T, dir, config string, change ...func(*exec.Cmd)) *program {
	t.Helper()
	p := &program{ready: make(chan struct{}), exited: make(chan struct{})}
	p.cmd = exec.CommandContext(context.WithoutCancel(t.Context()), os.Getenv(envoytest.ProgramVariable), "serve", "--config", config, "--data", dir,
		"--grpc-address", "127.0.0.1:0", "--http-address", "127.0.0.1:0")
	for _, c := range change {
		c(p.cmd)
	}
	out, err := p.cmd.StderrPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	go p.read(out)
	t.Cleanup(p.kill)
	return p
}

// read records the output of the program until it ends.
func (p *program) read(out io.Reader) {
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var e entry
		p.mu.Lock()
		fmt.Fprintln(&p.raw, lines.Text())
		if json.Unmarshal(lines.Bytes(), &e) == nil {
			p.log = append(p.log, e)
		}
		p.mu.Unlock()
		if e.Message == "serving" {
			p.grpc, p.http = e.GRPC, e.HTTP
			close(p.ready)
		}
	}
	p.err = p.cmd.Wait()
	close(p.exited)
}

// configuration writes a configuration file that every user may read.
func configuration(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ratelimit.yaml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// start starts the program and waits until it answers.
func start(t *testing.T, dir, config string, change ...func(*exec.Cmd)) *program {
	t.Helper()
	p := launch(t, dir, config, change...)
	select {
	case <-p.ready:
	case <-p.exited:
		t.Fatalf("the program ended: %v\n%s", p.err, p.wrote())
	case <-time.After(patience):
		t.Fatalf("the program did not start within %v\n%s", patience, p.wrote())
	}
	return p
}

// kill ends the program at once, as a power cut would, if it has not ended.
func (p *program) kill() {
	_ = p.cmd.Process.Kill() // fails if it has ended
	<-p.exited
}

// stop has the program end cleanly.
func (p *program) stop(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := p.wait(t); err != nil {
		t.Fatalf("after SIGTERM: %v\n%s", err, p.wrote())
	}
}

// wait waits until the program has ended, and returns how.
func (p *program) wait(t *testing.T) error {
	t.Helper()
	select {
	case <-p.exited:
	case <-time.After(patience):
		t.Fatalf("the program did not end within %v\n%s", patience, p.wrote())
	}
	return p.err
}

// exitCode is that of a program that has ended.
func (p *program) exitCode() int {
	if exit, ok := errors.AsType[*exec.ExitError](p.err); ok {
		return exit.ExitCode()
	}
	return 0
}

func (p *program) wrote() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.raw.String()
}

// said returns the first line of the log with a message, false when there is none.
func (p *program) said(message string) (entry, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.log {
		if e.Message == message {
			return e, true
		}
	}
	return entry{}, false
}

// metric returns the value of a series.
func (p *program) metric(t *testing.T, series string) float64 {
	t.Helper()
	for line := range strings.Lines(p.get(t, "/metrics", nil)) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), series+" "); ok {
			n, err := strconv.ParseFloat(value, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("there is no metric %s", series)
	return 0
}

// get asks the program over HTTP; with a body it is a POST.
func (p *program) get(t *testing.T, path string, body io.Reader) string {
	t.Helper()
	method := http.MethodGet
	if body != nil {
		method = http.MethodPost
	}
	request, err := http.NewRequestWithContext(t.Context(), method, "http://"+p.http+path, body)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	transport := &http.Transport{DisableKeepAlives: true}
	response, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %v, %v\n%s", path, response.Status, err, text)
	}
	return string(text)
}

// balance asks for the balance of a limit, in tokens; nothing is taken.
func (p *program) balance(t *testing.T, key, value, limit string) float64 {
	t.Helper()
	question := fmt.Sprintf(`{"domain":"d","entries":[{"key":%q,"value":%q}],"hits":0}`, key, value)
	var answer struct {
		Limits []struct {
			Limit     string `json:"limit"`
			Available string `json:"available"`
		} `json:"limits"`
	}
	text := p.get(t, "/v1/explain", strings.NewReader(question))
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		t.Fatal(err)
	}
	for _, l := range answer.Limits {
		if l.Limit == limit {
			n, err := strconv.ParseFloat(l.Available, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("no limit %s in %s", limit, text)
	return 0
}
