package main

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/ratelimit/ratelimit/test/kit/programtest"
)

func TestTLS(t *testing.T) {
	dir := t.TempDir()
	server, client, stranger := programtest.NewIdentity(t, dir, "server"), programtest.NewIdentity(t, dir, "client"), programtest.NewIdentity(t, dir, "stranger")
	file := programtest.WriteFile(t, "c.yaml", fmt.Sprintf(`
server:
  grpc: {tls: {cert: %[1]q, key: %[2]q, client_ca: %[3]q}}
  http: {tls: {cert: %[1]q, key: %[2]q}}
`, server.Cert, server.Key, client.Cert)+programtest.TwoPerMinute)
	r := start(t, "--config", file)

	call := func(cfg *tls.Config) error {
		conn, err := grpc.NewClient(r.grpc, grpc.WithTransportCredentials(credentials.NewTLS(cfg)))
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }()
		_, err = rlsv3.NewRateLimitServiceClient(conn).ShouldRateLimit(t.Context(), adasRequest())
		return err
	}
	if err := call(&tls.Config{RootCAs: server.Pool, Certificates: []tls.Certificate{client.Pair}}); err != nil {
		t.Errorf("a client with a certificate: %v", err)
	}
	if err := call(&tls.Config{RootCAs: server.Pool, Certificates: []tls.Certificate{stranger.Pair}}); err == nil {
		t.Error("a client with another's certificate was let in")
	}
	if err := call(&tls.Config{RootCAs: server.Pool}); err == nil {
		t.Error("a client without a certificate was let in")
	}
	web := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: server.Pool}}}
	resp, err := web.Get("https://" + r.http + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("HTTPS: %d, %v", resp.StatusCode, err)
	}
}

// With client_name a certificate of the authorities is not enough: it must have the name.
func TestNameOfClients(t *testing.T) {
	dir := t.TempDir()
	server, client := programtest.NewIdentity(t, dir, "server"), programtest.NewIdentity(t, dir, "client")
	for name, want := range map[string]bool{"127.0.0.1": true, "other.example": false} {
		r := start(t, "--config", programtest.WriteFile(t, "c.yaml", fmt.Sprintf("server: {grpc: {tls: {cert: %q, key: %q, client_ca: %q, client_name: %q}}}", server.Cert, server.Key, client.Cert, name)+programtest.TwoPerMinute))
		conn, err := grpc.NewClient(r.grpc, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: server.Pool, Certificates: []tls.Certificate{client.Pair}})))
		if err != nil {
			t.Fatal(err)
		}
		_, err = rlsv3.NewRateLimitServiceClient(conn).ShouldRateLimit(t.Context(), adasRequest())
		if (err == nil) != want {
			t.Errorf("a certificate for 127.0.0.1 where clients must be %s: %v", name, err)
		}
		_ = conn.Close()
	}
}

// The listener of gRPC can be a Unix socket. One that a crash left is no obstacle.
func TestGRPCAtASocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "grpc.sock")
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	if err := dead.Close(); err != nil {
		t.Fatal(err)
	}
	start(t, "--config", programtest.WriteFile(t, "c.yaml", programtest.TwoPerMinute), "--grpc-address", "unix:"+path)
	conn, err := grpc.NewClient("unix:"+path, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := rlsv3.NewRateLimitServiceClient(conn).ShouldRateLimit(t.Context(), adasRequest()); err != nil {
		t.Error(err)
	}
}

func TestTLSMistakes(t *testing.T) {
	id := programtest.NewIdentity(t, t.TempDir(), "server")
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ yaml, want string }{
		"a pipe as key":   {fmt.Sprintf("{cert: %q, key: %q}", id.Cert, pipe), "server.grpc.tls.key: is no regular file: it is a pipe"},
		"a pipe as CA":    {fmt.Sprintf("{cert: %q, key: %q, client_ca: %q}", id.Cert, id.Key, pipe), "server.grpc.tls.client_ca: is no regular file: it is a pipe"},
		"no key file":     {fmt.Sprintf("{cert: %q, key: nowhere.key}", id.Cert), "server.grpc.tls.key: no such file"},
		"not a CA":        {fmt.Sprintf("{cert: %q, key: %q, client_ca: %q}", id.Cert, id.Key, id.Key), "no certificate in PEM form"},
		"cert and no key": {fmt.Sprintf("{cert: %q}", id.Cert), "server.grpc.tls"},
	} {
		file := programtest.WriteFile(t, "c.yaml", "server: {grpc: {tls: "+test.yaml+"}}\n"+programtest.TwoPerMinute)
		code, _, stderr := output(t, "serve", "--config", file)
		if code == 0 || !strings.Contains(stderr, test.want) {
			t.Errorf("%s: exit code %d, stderr lacks %q:\n%s", name, code, test.want, stderr)
		}
	}
}
