package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/test/kit/proctest"
	"github.com/ratelimit/ratelimit/test/kit/programtest"
)

// greeted starts serve, returns the first line that it prints, and ends it.
func greeted(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	out, w := io.Pipe()
	log, code := new(proctest.LogBuffer), make(chan int, 1)
	go func() {
		defer func() { _ = w.Close() }()
		code <- run(ctx, append([]string{"serve", "--grpc-address", "127.0.0.1:0"}, args...), w, log)
	}()
	lines := bufio.NewScanner(out)
	lines.Scan()
	line := lines.Text()
	go func() { _, _ = io.Copy(io.Discard, out) }()
	cancel(command.ErrInterrupted)
	if <-code != 0 {
		t.Fatal(log)
	}
	return line
}

// The image's environment gives the default of the HTTP listener's address. The file and
// the flag win over it.
func TestHTTPAddressOfTheEnvironment(t *testing.T) {
	t.Setenv(command.HTTPAddressVariable, "127.0.0.2:0")
	file := programtest.WriteFile(t, "c.yaml", "server: {http: {address: '127.0.0.3:0'}}\n"+programtest.TwoPerMinute)
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"--demo"}, "127.0.0.2:"},
		{[]string{"--config", file}, "127.0.0.3:"},
		{[]string{"--config", file, "--http-address", "127.0.0.4:0"}, "127.0.0.4:"},
	} {
		if line := greeted(t, test.args...); !strings.Contains(line, "HTTP on "+test.want) {
			t.Errorf("%v: got %q, want HTTP on %s", test.args, line, test.want)
		}
	}
}

// Probes reach a container with any flags. Without a file it does not start with the
// demo.
func TestImage(t *testing.T) {
	text, err := os.ReadFile("../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	if want := "\nENV " + command.HTTPAddressVariable + "=0.0.0.0:8080\n"; !strings.Contains(string(text), want) {
		t.Errorf("the Dockerfile lacks %q", want)
	}
	var args []string
	cmd := regexp.MustCompile(`(?m)^CMD (.*)$`).FindSubmatch(text)
	if cmd == nil || json.Unmarshal(cmd[1], &args) != nil {
		t.Fatalf("no CMD in\n%s", text)
	}
	cfg := programtest.Parsed(t, programtest.TwoPerMinute)
	for _, address := range []string{cfg.Server.GRPC.Address, cfg.Server.HTTP.Address} {
		_, port, _ := strings.Cut(address, ":")
		if !regexp.MustCompile(`(?m)^EXPOSE .*\b` + port + `\b`).Match(text) {
			t.Errorf("the Dockerfile does not expose the port of %s", address)
		}
	}
	t.Chdir(t.TempDir())
	if code, _, stderr := output(t, args...); code != command.ExitUsage || !strings.Contains(stderr, "--demo") {
		t.Errorf("%v: exit code %d\n%s", args, code, stderr)
	}
}
