package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/ratelimit/ratelimit/config"
)

// identity is a self-signed certificate with its key, and the files they are in.
type identity struct {
	cert, key string
	pair      tls.Certificate
	pool      *x509.CertPool
}

// newIdentity makes one for 127.0.0.1, in dir.
func newIdentity(t *testing.T, dir, name string) identity {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	id := identity{cert: filepath.Join(dir, name+".crt"), key: filepath.Join(dir, name+".key"), pool: x509.NewCertPool()}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
	for file, data := range map[string][]byte{id.cert: certPEM, id.key: keyPEM} {
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if id.pair, err = tls.X509KeyPair(certPEM, keyPEM); err != nil {
		t.Fatal(err)
	}
	id.pool.AppendCertsFromPEM(certPEM)
	return id
}

func TestTLS(t *testing.T) {
	dir := t.TempDir()
	server, client, stranger := newIdentity(t, dir, "server"), newIdentity(t, dir, "client"), newIdentity(t, dir, "stranger")
	file := write(t, "c.yaml", fmt.Sprintf(`
server:
  grpc: {tls: {cert: %[1]q, key: %[2]q, client_ca: %[3]q}}
  http: {tls: {cert: %[1]q, key: %[2]q}}
`, server.cert, server.key, client.cert)+twoPerMinute)
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
	if err := call(&tls.Config{RootCAs: server.pool, Certificates: []tls.Certificate{client.pair}}); err != nil {
		t.Errorf("a client with a certificate: %v", err)
	}
	if err := call(&tls.Config{RootCAs: server.pool, Certificates: []tls.Certificate{stranger.pair}}); err == nil {
		t.Error("a client with another's certificate was let in")
	}
	if err := call(&tls.Config{RootCAs: server.pool}); err == nil {
		t.Error("a client without a certificate was let in")
	}
	web := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: server.pool}}}
	resp, err := web.Get("https://" + r.http + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("HTTPS: %d, %v", resp.StatusCode, err)
	}
}

func TestRenewedCertificateIsUsed(t *testing.T) {
	dir := t.TempDir()
	id := newIdentity(t, dir, "server")
	log := new(logBuffer)
	pair := newReloadedPair("server.grpc.tls", config.TLS{Cert: id.cert, Key: id.key}, slog.New(slog.NewTextHandler(log, nil)))
	serial := func() string {
		t.Helper()
		c, err := pair.certificate(nil)
		if err != nil {
			t.Fatal(err)
		}
		return c.Leaf.SerialNumber.String()
	}
	first := serial()
	renewed := newIdentity(t, dir, "renewed")
	for from, to := range map[string]string{renewed.cert: id.cert, renewed.key: id.key} {
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
		later := time.Now().Add(time.Minute) // two writes can fall into one tick of the file system's clock
		if err := os.Chtimes(to, later, later); err != nil {
			t.Fatal(err)
		}
	}
	second := serial()
	if second == first {
		t.Error("the old certificate is still in use")
	}
	if err := os.WriteFile(id.cert, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if got := serial(); got != second {
			t.Error("in the middle of a renewal the certificate before must serve")
		}
	}
	if got := strings.Count(log.String(), "the new certificate is not used"); got != 1 {
		t.Errorf("the unusable certificate was reported %d times, want once:\n%s", got, log)
	}
}

func TestTLSMistakes(t *testing.T) {
	id := newIdentity(t, t.TempDir(), "server")
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ yaml, want string }{
		"a pipe as key":   {fmt.Sprintf("{cert: %q, key: %q}", id.cert, pipe), "server.grpc.tls.key: is no regular file: it is a pipe"},
		"a pipe as CA":    {fmt.Sprintf("{cert: %q, key: %q, client_ca: %q}", id.cert, id.key, pipe), "server.grpc.tls.client_ca: is no regular file: it is a pipe"},
		"no key file":     {fmt.Sprintf("{cert: %q, key: nowhere.key}", id.cert), "server.grpc.tls.key: no such file"},
		"not a CA":        {fmt.Sprintf("{cert: %q, key: %q, client_ca: %q}", id.cert, id.key, id.key), "no certificate in PEM form"},
		"cert and no key": {fmt.Sprintf("{cert: %q}", id.cert), "server.grpc.tls"},
	} {
		file := write(t, "c.yaml", "server: {grpc: {tls: "+test.yaml+"}}\n"+twoPerMinute)
		code, _, stderr := output(t, "serve", "--config", file)
		if code == 0 || !strings.Contains(stderr, test.want) {
			t.Errorf("%s: exit code %d, stderr lacks %q:\n%s", name, code, test.want, stderr)
		}
	}
}
