package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/internal/cli"
	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/test/kit/proctest"
	"github.com/ratelimit/ratelimit/test/kit/programtest"
)

// console is a command console that runs, and a browser of it.
type console struct {
	base, token string // of its link
	browser     *http.Client
	log         *proctest.LogBuffer
}

// startConsole runs the command console with flags until the test ends, which must be exit code 0.
func startConsole(t *testing.T, flags ...string) *console {
	t.Helper()
	ctx, cancel := context.WithCancelCause(context.Background())
	out, w := io.Pipe()
	c := &console{log: new(proctest.LogBuffer)}
	code := make(chan int, 1)
	go func() {
		defer func() { _ = w.Close() }()
		code <- run(ctx, append([]string{"console"}, flags...), w, c.log)
	}()
	t.Cleanup(func() {
		cancel(command.ErrInterrupted)
		if got := <-code; got != 0 {
			t.Errorf("console: exit code %d\n%s", got, c.log)
		}
	})
	link, err := bufio.NewReader(out).ReadString('\n')
	var ok bool
	c.base, c.token, ok = strings.Cut(strings.TrimSuffix(link, "\n"), "/#login=")
	if err != nil || !ok || !strings.HasPrefix(c.base, "http://127.0.0.1:") {
		t.Fatalf("the link is %q, %v\n%s", link, err, c.log)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	c.browser = &http.Client{Jar: jar, Timeout: patience}
	return c
}

// ask makes a request of the browser, and returns the status and the text of the answer.
func (c *console) ask(t *testing.T, method, path, body string, out any) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, c.base+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Origin", c.base)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	resp, err := c.browser.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err == nil && out != nil {
		err = json.Unmarshal(text, out)
	}
	if err != nil {
		t.Fatalf("%s: %v\n%s", path, err, text)
	}
	return resp.StatusCode
}

func (c *console) login(t *testing.T) int {
	t.Helper()
	return c.ask(t, http.MethodPost, "/console/login", `{"token":"`+c.token+`"}`, nil)
}

// The command opens a console of a service on its socket, over TCP with a token, and by a context with TLS. A browser
// needs nothing but the link, acts as the principal of the command, and has no credential that the service knows.
func TestConsole(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	admins, hash := newTokenPair(t)
	id := programtest.NewIdentity(t, t.TempDir(), "server")
	file := programtest.WriteFile(t, "c.yaml", adminConfig(fmt.Sprintf("address: '127.0.0.1:0', tls: {cert: %q, key: %q}, tokens: {rob: {role: operate, hash: %q}}", id.Cert, id.Key, hash)))
	data, tokenFile := filepath.Join(t.TempDir(), "data"), programtest.WriteFile(t, "token", admins)
	r := start(t, "--config", file, "--data", data)
	if code, _, stderr := output(t, "context", "add", "prod", "--server", r.adminURL(t), "--ca", id.Cert, "--token-file", tokenFile); code != 0 {
		t.Fatal(stderr)
	}
	for _, test := range []struct {
		name            string
		flags           []string
		principal, role string
		put             int // status of a change of limits
	}{
		{"socket", []string{"--data", data}, "socket", "administer", http.StatusCreated},
		{"token", []string{"--server", r.adminURL(t), "--ca", id.Cert, "--token-file", tokenFile}, "rob", "operate", http.StatusForbidden},
		{"context", []string{"--context", "prod"}, "rob", "operate", http.StatusForbidden},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := startConsole(t, test.flags...)
			if code := c.ask(t, http.MethodGet, "/v1/status", "", nil); code != http.StatusUnauthorized {
				t.Fatalf("without a login: %d", code)
			}
			if code := c.ask(t, http.MethodGet, "/console/main.js", "", nil); code != http.StatusOK {
				t.Errorf("the page: %d", code)
			}
			if code := c.login(t); code != http.StatusNoContent {
				t.Fatalf("login: %d", code)
			}
			if code := c.ask(t, http.MethodGet, "/console/session", "", nil); code != http.StatusNoContent {
				t.Errorf("session: %d", code)
			}
			var status api.Status
			if code := c.ask(t, http.MethodGet, "/v1/status", "", &status); code != http.StatusOK || status.Role != test.role || !strings.HasPrefix(status.Principal, test.principal) {
				t.Errorf("status: %d %+v", code, status)
			}
			if code := c.ask(t, http.MethodPut, "/v1/namespaces/default/limits/entities/user%2F"+test.name+"/api", `{"limits":{"rpm":"7/minute"}}`, nil); code != test.put {
				t.Errorf("limits: %d, want %d", code, test.put)
			}
			if code := c.ask(t, http.MethodPut, "/v1/namespaces/default/disabled/entities/user%2F"+test.name+"?allowNew=true", "", nil); code/100 != 2 {
				t.Errorf("disable: %d", code)
			}
			_, audit, _ := output(t, "list", "audit", "user/"+test.name, "--data", data)
			if !strings.Contains(audit, test.principal) {
				t.Errorf("the audit lacks %s:\n%s", test.principal, audit)
			}
			if code := c.login(t); code != http.StatusUnauthorized {
				t.Errorf("a second login: %d", code)
			}
			u, _ := url.Parse(c.base)
			for _, cookie := range c.browser.Jar.Cookies(u) {
				if strings.Contains(r.log.String(), cookie.Value) || strings.Contains(c.log.String(), cookie.Value) || strings.Contains(cookie.Value, admins) {
					t.Error("a log has the session, or the cookie is the token of the service")
				}
			}
			if strings.Contains(r.log.String(), c.token) || !strings.Contains(c.log.String(), "as "+status.Principal+" with the role "+test.role) {
				t.Errorf("the log of the service has the token of the link, or the command does not say as whom:\n%s", c.log)
			}
		})
	}
}

// A service says by 404 that it is no console of a command, to callers with and without a credential.
func TestServiceHasNoSession(t *testing.T) {
	_, hash := newTokenPair(t)
	r := start(t, "--config", programtest.WriteFile(t, "c.yaml", adminConfig(fmt.Sprintf("address: '127.0.0.1:0', tokens: {a: {role: read, hash: %q}}", hash))))
	resp, err := http.Get(strings.Replace(r.adminURL(t), "https:", "http:", 1) + "/console/session")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusNotFound {
		t.Errorf("got %d, want 404", resp.StatusCode)
	}
}

// A browser of the user opens the link by a file, so that no other user sees the token among the processes.
func TestConsoleOpens(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", filepath.Join(dir, "tmp"))
	opened := filepath.Join(dir, "opened")
	script := "#!/bin/sh\n{ echo \"$@\"; ls -ld \"$(dirname \"$1\")\"; cat \"$1\"; } > '" + opened + ".part' && mv '" + opened + ".part' '" + opened + "'\n"
	for _, name := range []string{"xdg-open", "open"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "tmp"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	data := filepath.Join(dir, "data")
	start(t, "--config", programtest.WriteFile(t, "c.yaml", hundredPerDay), "--data", data)
	t.Run("open", func(t *testing.T) {
		c := startConsole(t, "--data", data, "--open")
		var text []byte
		eventually(t, "the browser", func() bool {
			text, _ = os.ReadFile(opened)
			return len(text) > 0
		})
		arguments, page, _ := bytes.Cut(text, []byte("\n"))
		if bytes.Contains(arguments, []byte(c.token)) || !bytes.HasPrefix(page, []byte("drwx------")) || !bytes.Contains(page, []byte("url="+c.base+"/#login="+c.token)) {
			t.Errorf("the browser was opened with %s", text)
		}
	})
	if left, err := os.ReadDir(filepath.Join(dir, "tmp")); err != nil || len(left) > 0 {
		t.Errorf("the command leaves %v, %v", left, err)
	}
}

// Without a service, with a port that another process has, and with wrong flags the command says why.
func TestConsoleRefused(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	if code, _, stderr := output(t, "console", "--data", data); code != command.ExitSilence || !strings.Contains(stderr, "no service answers at") {
		t.Errorf("no service: exit code %d\n%s", code, stderr)
	}
	r := start(t, "--config", programtest.WriteFile(t, "c.yaml", hundredPerDay), "--data", data)
	_, port, _ := strings.Cut(r.http, ":")
	if code, _, stderr := output(t, "console", "--data", data, "--port", port); code != command.ExitFailure || !strings.Contains(stderr, "--port: ") {
		t.Errorf("a port in use: exit code %d\n%s", code, stderr)
	}
	if code, _, stderr := output(t, "console", "--port", "65536"); code != command.ExitUsage || !strings.Contains(stderr, "--port") {
		t.Errorf("no port: exit code %d\n%s", code, stderr)
	}
	_, hash := newTokenPair(t)
	tcp := start(t, "--config", programtest.WriteFile(t, "d.yaml", adminConfig(fmt.Sprintf("address: '127.0.0.1:0', tokens: {a: {role: read, hash: %q}}", hash))))
	t.Setenv(cli.TokenVariable, "")
	if code, _, stderr := output(t, "console", "--server", strings.Replace(tcp.adminURL(t), "https:", "http:", 1)); code != command.ExitFailure || !strings.Contains(stderr, "this command takes one from --token-file") {
		t.Errorf("no token: exit code %d\n%s", code, stderr)
	}
}
