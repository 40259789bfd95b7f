package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/internal/cli"
	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/internal/server"
	"github.com/ratelimit/ratelimit/internal/server/guard"
	"github.com/ratelimit/ratelimit/test/kit/programtest"
)

// newTokenPair returns the token and the hash that `ratelimit token` prints.
func newTokenPair(t *testing.T) (token, hash string) {
	t.Helper()
	code, stdout, stderr := output(t, "token")
	if _, err := fmt.Sscanf(stdout, "token %s\nhash %s\n", &token, &hash); code != 0 || err != nil {
		t.Fatalf("exit code %d, %v\n%s%s", code, err, stdout, stderr)
	}
	return token, hash
}

// adminConfig is hundredPerDay with settings of server.admin.
func adminConfig(settings string) string {
	return "server: {admin: {" + settings + "}}\n" + hundredPerDay
}

// On TCP a token names its caller, and the token's role allows the calls.
func TestAdminTokens(t *testing.T) {
	dir := t.TempDir()
	data, to := filepath.Join(dir, "data"), filepath.Join(dir, "b")
	top, topHash := newTokenPair(t)
	reader, readerHash := newTokenPair(t)
	stranger, _ := newTokenPair(t)
	file := programtest.WriteFile(t, "c.yaml", adminConfig(fmt.Sprintf("address: '127.0.0.1:0', tokens: {top: {role: administer, hash: %q}, dash: {role: read, hash: %q}}", topHash, readerHash)))
	r := start(t, "--config", file, "--data", data)
	server := strings.Replace(r.adminURL(t), "https:", "http:", 1)
	inFile := programtest.WriteFile(t, "token", top+"\n")
	for _, test := range []struct {
		name  string
		env   string
		flags []string
		code  int
		want  string
	}{
		{"none", "", nil, 1, "401 Unauthorized: a token is needed: Authorization: Bearer TOKEN; this command takes one from --token-file, or from RATELIMIT_TOKEN"},
		{"unknown", stranger, nil, 1, "401 Unauthorized: the token is not known"},
		{"the hash", topHash, nil, 1, "401 Unauthorized: the token is not known"},
		{"short", "x", nil, 1, "401 Unauthorized: the token is too short"},
		{"to read", reader, nil, 1, "403 Forbidden: the role administer is needed, and this principal has the role read"},
		{"to administer", top, nil, 0, ""},
		{"in a file", stranger, []string{"--token-file", inFile}, 0, ""},
		{"in no file", top, []string{"--token-file", inFile + ".none"}, 2, "--token-file: "},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv(cli.TokenVariable, test.env)
			args := append([]string{"backup", "--server", server, "-o", to}, test.flags...)
			if code, _, stderr := output(t, args...); code != test.code || !strings.Contains(stderr, test.want) {
				t.Errorf("exit code %d, want %d; stderr lacks %q:\n%s", code, test.code, test.want, stderr)
			}
		})
	}
	t.Setenv(cli.TokenVariable, reader)
	if code, stdout, stderr := output(t, "explain", "--server", server, "shop", "user=ada"); code != 0 || !strings.Contains(stdout, "users") {
		t.Errorf("explain: exit code %d\n%s%s", code, stdout, stderr)
	}
	if log := r.log.String(); strings.Contains(log, top) || !strings.Contains(log, "principal=top role=administer") || strings.Contains(log, "principal=dash") {
		t.Errorf("the log has a token or a read, or lacks a principal:\n%s", log)
	}

	// A token that is taken out of the file is refused, without a restart.
	text := strings.Replace(adminConfig(fmt.Sprintf("address: '127.0.0.1:0', tokens: {top: {role: administer, hash: %q}}", topHash)), "{top", "{other", 1)
	replaceFile(t, file, strings.Replace(text, topHash, readerHash, 1))
	t.Setenv(cli.TokenVariable, top)
	eventually(t, "the token to be refused", func() bool {
		code, _, stderr := output(t, "backup", "--server", server, "-o", to)
		return code == 1 && strings.Contains(stderr, "401")
	})
}

// The socket is beside an address on TCP, with TLS too: commands on the machine need neither a token
// nor an address. The word off turns off both.
func TestAdminSocketBesideTCP(t *testing.T) {
	run := t.TempDir()
	t.Setenv(server.RunDirVariable, filepath.Join(run, "ratelimit"))
	token, hash := newTokenPair(t)
	id := programtest.NewIdentity(t, t.TempDir(), "server")
	file := programtest.WriteFile(t, "c.yaml", adminConfig(fmt.Sprintf("address: '127.0.0.1:0', tls: {cert: %q, key: %q}, tokens: {top: {role: read, hash: %q}}", id.Cert, id.Key, hash)))
	data := filepath.Join(t.TempDir(), "data")
	for name, test := range map[string]struct{ serve, find []string }{
		"in the data directory": {[]string{"--data", data}, []string{"--config", file, "--data", data}},
		"in the run directory":  {nil, []string{"--config", file}},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, append([]string{"--config", file}, test.serve...)...)
			remote := r.adminURL(t)
			if code, stdout, stderr := output(t, append([]string{"status"}, test.find...)...); code != 0 || !strings.Contains(stdout, "socket") {
				t.Errorf("over the socket: exit code %d\n%s%s", code, stdout, stderr)
			}
			t.Setenv(cli.TokenVariable, token)
			if code, stdout, stderr := output(t, "status", "--server", remote, "--ca", id.Cert); code != 0 || !strings.Contains(stdout, "top") {
				t.Errorf("over TCP: exit code %d\n%s%s", code, stdout, stderr)
			}
			r.end(t)
		})
	}
	off := start(t, "--config", file, "--admin-address", "off")
	off.remaining(t, "ada")
	if code, _, stderr := output(t, "status"); code != command.ExitSilence || !strings.Contains(stderr, "no running service was found") {
		t.Errorf("off: exit code %d\n%s", code, stderr)
	}
}

// An address that another process has ends the start, and leaves no socket behind.
func TestAdminAddressInUse(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	_, hash := newTokenPair(t)
	file := programtest.WriteFile(t, "c.yaml", adminConfig(fmt.Sprintf("address: %q, tokens: {top: {role: read, hash: %q}}", taken.Addr(), hash)))
	data := filepath.Join(t.TempDir(), "data")
	code, _, stderr := output(t, "serve", "--config", file, "--data", data, "--grpc-address", "127.0.0.1:0", "--http-address", "127.0.0.1:0")
	if code != command.ExitFailure || !strings.Contains(stderr, "server.admin.address, or --admin-address: ") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
	if _, err := os.Lstat(filepath.Join(data, server.SocketName)); err == nil {
		t.Error("the socket is there")
	}
}

// replaceFile replaces a file as a whole.
func replaceFile(t *testing.T, path, text string) {
	t.Helper()
	next := path + ".next"
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, path); err != nil {
		t.Fatal(err)
	}
}

// Nothing listens on TCP that would let in any caller, or let tokens be read on the way.
func TestAdminListenersThatAreRefused(t *testing.T) {
	token, hash := newTokenPair(t)
	tokens := fmt.Sprintf("tokens: {a: {role: read, hash: %q}}", hash)
	id := programtest.NewIdentity(t, t.TempDir(), "server")
	plain := fmt.Sprintf("tls: {cert: %q, key: %q}", id.Cert, id.Key)
	for _, test := range []struct{ name, settings, want string }{
		{"no credential", "address: '127.0.0.1:0'", "server.admin: at 127.0.0.1:0 callers need a credential"},
		{"TLS alone", "address: '127.0.0.1:0', " + plain, "callers need a credential"},
		{"tokens in plain text", "address: '0.0.0.0:0', " + tokens, "tokens could be read on the network: give tls"},
		{"on all interfaces", "address: ':0', " + tokens, "tokens could be read on the network"},
		{"a token for a hash", fmt.Sprintf("address: '127.0.0.1:0', tokens: {a: {role: read, hash: %q}}", token), "server.admin.tokens.a.hash: must be sha256: and 64 hexadecimal digits"},
		{"no role", fmt.Sprintf("tokens: {a: {hash: %q}}", hash), "server.admin.tokens.a: needs role and hash"},
		{"another role", fmt.Sprintf("tokens: {a: {role: reed, hash: %q}}", hash), `did you mean "read"`},
		{"no path", "address: 'unix:'", "needs a path, such as unix:/run/ratelimit/admin.sock"},
		{"no port", "address: localhost", "server.admin.address: must be unix:PATH, off, or a host and a port"},
	} {
		t.Run(test.name, func(t *testing.T) {
			code, _, stderr := output(t, "check", "--config", programtest.WriteFile(t, "c.yaml", adminConfig(test.settings)))
			if code != command.ExitUsage || !strings.Contains(stderr, test.want) || strings.Contains(stderr, token) {
				t.Errorf("exit code %d, stderr lacks %q, or has the token:\n%s", code, test.want, stderr)
			}
		})
	}
	good := programtest.WriteFile(t, "c.yaml", hundredPerDay)
	for address, want := range map[string]string{
		"127.0.0.1:0": "--admin-address: at 127.0.0.1:0 callers need a credential", "unix:": "--admin-address: address \"unix:\" needs a path", "x": "unix:PATH, host:port or off",
	} {
		if code, _, stderr := output(t, "serve", "--config", good, "--admin-address", address); code != command.ExitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit code %d, stderr lacks %q:\n%s", address, code, want, stderr)
		}
	}
}

// A socket that is named and cannot be opened ends the start; one in the usual place does not.
func TestAdminSocketThatCannotBe(t *testing.T) {
	file := programtest.WriteFile(t, "c.yaml", hundredPerDay)
	taken := filepath.Dir(file)
	code, _, stderr := output(t, "serve", "--config", file, "--grpc-address", "127.0.0.1:0", "--http-address", "127.0.0.1:0", "--admin-address", "unix:"+taken)
	if code != command.ExitFailure || !strings.Contains(stderr, "server.admin.address, or --admin-address: ") || !strings.Contains(stderr, "no socket") {
		t.Errorf("exit code %d, stderr:\n%s", code, stderr)
	}
	data := filepath.Join(t.TempDir(), "data")
	if err := os.MkdirAll(filepath.Join(data, "admin.sock"), 0o700); err != nil {
		t.Fatal(err)
	}
	r := start(t, "--config", file, "--data", data)
	r.remaining(t, "ada")
	eventually(t, "a warning", func() bool { return strings.Contains(r.log.String(), "there is no admin socket") })
	if code, _, stderr := output(t, "backup", "--data", data, "-o", "-"); code != command.ExitSilence {
		t.Errorf("backup: exit code %d\n%s", code, stderr)
	}
}

// Commands find the only service of the run directory, and ask which of several.
func TestServiceIsFound(t *testing.T) {
	run := t.TempDir()
	t.Setenv(server.RunDirVariable, filepath.Join(run, "ratelimit"))
	file := programtest.WriteFile(t, "c.yaml", hundredPerDay)
	backup := func(want string, flags ...string) {
		t.Helper()
		wantCode := command.ExitFailure
		if strings.HasPrefix(want, "no running service") {
			wantCode = command.ExitSilence
		}
		code, _, stderr := output(t, append([]string{"backup", "-o", "-"}, flags...)...)
		if code != wantCode || !strings.Contains(stderr, want) {
			t.Errorf("%v: exit code %d, stderr lacks %q:\n%s", flags, code, want, stderr)
		}
	}
	backup("no running service was found in a run directory: one that keeps a data directory is found with --data DIR or its --config FILE, any other with --server unix:///PATH")
	off := start(t, "--config", file, "--admin-address", "off")
	off.remaining(t, "ada")
	backup("no running service was found")
	first := start(t, "--config", file)
	firstURL := first.adminURL(t)
	backup("unix://" + run + "/ratelimit/admin.sock answers 404 Not Found: this service has no data file")
	backup("unix://"+run+"/ratelimit/admin.sock answers 404", "--config", file)
	second := start(t, "--config", file)
	secondURL := second.adminURL(t)
	backup("2 services run here: say which with --server, one of " + firstURL + ", " + secondURL)
	backup(secondURL+" answers 404", "--server", secondURL)
	backup("unix:"+run+"/ratelimit/admin-2.sock answers 404", "--server", "unix:"+run+"/ratelimit/admin-2.sock")
	first.end(t)
	backup(secondURL + " answers 404")
	backup("says server.admin.address: off", "--config", programtest.WriteFile(t, "off.yaml", adminConfig("address: off")))
	t.Chdir(filepath.Dir(programtest.WriteFile(t, command.DefaultFile, adminConfig("address: off"))))
	backup("says server.admin.address: off")
}

// A token goes to no service that could be another, and over no network in plain text.
func TestTokenStays(t *testing.T) {
	token, _ := newTokenPair(t)
	t.Setenv(cli.TokenVariable, token)
	shown := make(chan string, 1)
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { shown <- r.Header.Get("Authorization") }))
	defer thief.Close()
	redirect := httptest.NewServer(http.RedirectHandler(thief.URL, http.StatusTemporaryRedirect))
	defer redirect.Close()
	for server, want := range map[string]struct {
		code int
		text string
	}{
		redirect.URL:               {command.ExitFailure, "307 Temporary Redirect"},
		"http://ratelimit.example": {command.ExitUsage, "the token could be read on the network: use https"},
	} {
		if code, _, stderr := output(t, "backup", "--server", server, "-o", "-"); code != want.code || !strings.Contains(stderr, want.text) {
			t.Errorf("%s: exit code %d, want %d; stderr lacks %q:\n%s", server, code, want.code, want.text, stderr)
		}
	}
	select {
	case got := <-shown:
		t.Errorf("another service was shown %q", got)
	default:
	}
}

// The admin listener answers until the calls in flight have ended, and its socket goes
// with it.
func TestAdminWhileDraining(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	r := start(t, "--config", programtest.WriteFile(t, "c.yaml", "drain: 1h\n"+hundredPerDay), "--data", data)
	r.stop(command.ErrTerminated)
	eventually(t, "not ready", func() bool {
		code, _ := r.get(t, "/readyz")
		return code == http.StatusServiceUnavailable
	})
	if code, _, stderr := output(t, "backup", "--data", data, "-o", "-"); code != 0 {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
}

// Clients without a credential hold a connection on TCP for a bounded time, and get no more
// than a refusal. Any number of them keeps out neither new connections nor those with a
// credential.
func TestStrangersMakeRoomForAdministration(t *testing.T) {
	token, hash := newTokenPair(t)
	r := start(t, "--config", programtest.WriteFile(t, "c.yaml", adminConfig(fmt.Sprintf("address: '127.0.0.1:0', tokens: {a: {role: read, hash: %q}}", hash))))
	address := strings.TrimPrefix(r.adminURL(t), "https://")
	dial := func() net.Conn {
		conn, err := (&net.Dialer{Timeout: patience}).DialContext(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	ask := func(conn net.Conn) {
		t.Helper()
		if err := conn.SetDeadline(time.Now().Add(server.HTTPReadTimeout * 9 / 10)); err != nil { // then the others leave by themselves
			t.Fatal(err)
		}
		_, err := io.WriteString(conn, "GET /v1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+token+"\r\n\r\n")
		answer := make([]byte, 12)
		if err == nil {
			_, err = io.ReadFull(conn, answer)
		}
		if err != nil || string(answer) != "HTTP/1.1 404" {
			t.Fatalf("got %q, %v; want 404", answer, err)
		}
	}
	operator := dial()
	ask(operator)
	_ = operator.SetDeadline(time.Time{})
	for range guard.Share(guard.Descriptors(), 1).Admin + 64 {
		_, _ = io.WriteString(dial(), "GET / HTTP/1.1\r\nHost: x\r\nX: ") // to the end it is not read
	}
	ask(dial())
	if err := operator.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, operator); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the connection of the operator: %v, want that it is open", err)
	}
}

func TestAdminBounds(t *testing.T) {
	_, hash := newTokenPair(t)
	r := start(t, "--config", programtest.WriteFile(t, "c.yaml", adminConfig(fmt.Sprintf("address: '127.0.0.1:0', tokens: {a: {role: read, hash: %q}}", hash))))
	address := strings.TrimPrefix(r.adminURL(t), "https://")
	for name, request := range map[string]struct{ text, want string }{
		"a large header":     {"GET / HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 64<<10) + "\r\n\r\n", "431"},
		"an unfinished body": {"POST /v1/restore HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nx", "401"},
		"HTTP/2":             {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "401"},
	} {
		conn, err := (&net.Dialer{Timeout: patience}).DialContext(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, request.text); err != nil {
			t.Fatal(err)
		}
		if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(conn) // to the end: the connection is not kept
		if !strings.Contains(string(answer), " "+request.want+" ") {
			t.Errorf("%s: got %q, %v; want %s", name, answer, err, request.want)
		}
		_ = conn.Close()
	}
}
