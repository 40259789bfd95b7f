package main

import (
	"bufio"
	"context"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/test/kit/proctest"
	"github.com/ratelimit/ratelimit/test/kit/programtest"
)

// startDemo runs serve with the example rules, and returns its greeting and its log.
func startDemo(t *testing.T, flags ...string) (greeting string, log *proctest.LogBuffer) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(context.Background())
	out, w := io.Pipe()
	log = new(proctest.LogBuffer)
	code := make(chan int, 1)
	go func() {
		defer func() { _ = w.Close() }()
		code <- run(ctx, append([]string{"serve", "--demo", "--grpc-address", "127.0.0.1:0", "--http-address", "127.0.0.1:0"}, flags...), w, log)
	}()
	t.Cleanup(func() {
		cancel(command.ErrInterrupted)
		if got := <-code; got != 0 {
			t.Errorf("exit code %d\n%s", got, log)
		}
	})
	lines := bufio.NewScanner(out)
	for !strings.Contains(greeting, " console ") && lines.Scan() {
		greeting += lines.Text() + "\n"
	}
	return greeting, log
}

// The first lines that the demo prints to try show an answer 429 and its headers, in any shell.
func TestDemoShowsADenial(t *testing.T) {
	greeting, log := startDemo(t)
	_, lines, ok := strings.Cut(greeting, "try in another terminal:\n")
	tries := strings.Split(lines, "\n")
	if !ok || len(tries) < 5 || !strings.Contains(tries[4], " console ") {
		t.Fatalf("the greeting is\n%s", greeting)
	}
	codes, denial := "", ""
	for range 3 { // a token comes back in three seconds
		answer, err := exec.CommandContext(t.Context(), "sh", "-c", strings.Join(tries[:3], "\n")).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, answer)
		}
		var first string
		if first, denial, _ = strings.Cut(string(answer), "\n"); codes == "" {
			codes = first
		}
		if strings.HasPrefix(denial, "HTTP/1.1 429") {
			break
		}
	}
	if !strings.HasPrefix(codes, strings.Repeat("200 ", 20)) || !strings.Contains(codes, "429") {
		t.Errorf("the codes are %s", codes)
	}
	if !strings.HasPrefix(denial, "HTTP/1.1 429") || !strings.Contains(strings.ToLower(denial), "retry-after: ") {
		t.Errorf("the denial is %s", denial)
	}
	if strings.Contains(log.String(), "traffic") {
		t.Errorf("there is traffic without the flag:\n%s", log)
	}
}

// The command for the console finds a service whose data directory the command line names.
func TestGreetingFindsTheDataDirectory(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	greeting, _ := startDemo(t, "--data", data)
	_, flags, _ := strings.Cut(greeting, " console ")
	flags, _, _ = strings.Cut(flags, "#")
	if code, out, stderr := output(t, append([]string{"status"}, strings.Fields(flags)...)...); code != 0 || !strings.Contains(out, data) {
		t.Errorf("with %q: exit code %d\n%s%s", flags, code, out, stderr)
	}
}

// With --traffic the service calls itself, and says so.
func TestDemoMakesTraffic(t *testing.T) {
	greeting, log := startDemo(t, "--traffic")
	_, address, _ := strings.Cut(greeting, "HTTP on ")
	address, _, _ = strings.Cut(address, "\n")
	r := &running{http: address, log: log}
	eventually(t, "calls", func() bool {
		_, metrics := r.get(t, "/metrics")
		return regexp.MustCompile(`decisions_total\{[^}]*rule="by-plan"\} [1-9]`).MatchString(metrics)
	})
	if !strings.Contains(log.String(), "the demo makes traffic of its own") {
		t.Errorf("the log does not say so:\n%s", log)
	}
	if code, _, stderr := output(t, "serve", "--traffic", "--config", programtest.WriteFile(t, "c.yaml", hundredPerDay)); code != command.ExitUsage || !strings.Contains(stderr, "--traffic") {
		t.Errorf("without the example rules: exit code %d\n%s", code, stderr)
	}
}
