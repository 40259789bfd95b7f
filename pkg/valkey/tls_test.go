package valkey_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/valkey"
	"github.com/ratelimit/ratelimit/test/kit/proctest"
	"github.com/ratelimit/ratelimit/test/kit/valkeytest"
)

// authority is a certificate authority of a test.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string // with its certificate
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir()}
	a.cert = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	a.file, _, a.key = a.issue("authority", a.cert)
	return a
}

// issue makes a key and its certificate, signed by the authority, and returns their files.
func (a *authority) issue(name string, template *x509.Certificate) (certFile, keyFile string, key *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	signer := a.key
	if signer == nil {
		signer = key
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	return a.write(name+".crt", "CERTIFICATE", cert), a.write(name+".key", "PRIVATE KEY", secret), key
}

func (a *authority) write(name, kind string, der []byte) string {
	a.t.Helper()
	file := filepath.Join(a.dir, name)
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.t.Fatal(err)
	}
	return file
}

// leaf returns the files of a certificate for localhost, and of its key.
func (a *authority) leaf(name string) (certFile, keyFile string) {
	a.t.Helper()
	certFile, keyFile, _ = a.issue(name, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
	return certFile, keyFile
}

// withTLS starts a server that wants certificates of its clients, and returns its address for TLS.
func withTLS(t *testing.T, a *authority, options ...string) (server *valkeytest.Server, address string) {
	t.Helper()
	cert, key := a.leaf("server")
	_, port, err := net.SplitHostPort(proctest.FreeAddress(t))
	if err != nil {
		t.Fatal(err)
	}
	server = valkeytest.Start(t, append([]string{"--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", a.file}, options...)...)
	return server, net.JoinHostPort("localhost", port)
}

// A store and its server know each other by certificates.
func TestTLS(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	cert, key := a.leaf("client")
	strange, strangeKey := other.leaf("client")
	server, address := withTLS(t, a)
	for name, of := range map[string]struct {
		tls valkey.TLS
		ok  bool
	}{
		"good":                     {valkey.TLS{CAFile: a.file, CertFile: cert, KeyFile: key}, true},
		"good, by its name":        {valkey.TLS{CAFile: a.file, CertFile: cert, KeyFile: key, ServerName: "localhost"}, true},
		"wrong name of the server": {valkey.TLS{CAFile: a.file, CertFile: cert, KeyFile: key, ServerName: "elsewhere"}, false},
		"wrong authority":          {valkey.TLS{CAFile: other.file, CertFile: cert, KeyFile: key}, false},
		"authority of the system":  {valkey.TLS{CertFile: cert, KeyFile: key}, false},
		"wrong certificate":        {valkey.TLS{CAFile: a.file, CertFile: strange, KeyFile: strangeKey}, false},
		"no certificate":           {valkey.TLS{CAFile: a.file}, false},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := configOf(t, server, func(cfg *valkey.Config) {
				cfg.Connection.Addresses = []string{address}
				cfg.Connection.TLS = &of.tls
			})
			s, err := valkey.Open(t.Context(), cfg)
			if !of.ok {
				if !errors.Is(err, limiter.ErrUnavailable) {
					t.Errorf("Open: %v, want a refusal", err)
				}
				t.Log(err)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if admitted, err := takeFrom(s, "e"); !admitted || err != nil {
				t.Errorf("take: %t, %v", admitted, err)
			}
			if err := s.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// An address of the wrong kind is told as such: TLS where the server speaks none, and the reverse.
func TestTLSAtAPortWithout(t *testing.T) {
	a := newAuthority(t)
	server, secure := withTLS(t, a)
	for name, of := range map[string]struct {
		change func(c *valkey.Connection)
		want   string
	}{
		"TLS at a plain port": {func(c *valkey.Connection) { c.TLS = &valkey.TLS{CAFile: a.file} }, "does not answer TLS"},
		"plain text at TLS":   {func(c *valkey.Connection) { c.Addresses = []string{secure} }, "it may want TLS"},
		"a name that it has not": {func(c *valkey.Connection) {
			c.Addresses, c.TLS = []string{secure}, &valkey.TLS{CAFile: a.file, ServerName: "elsewhere"}
		}, "tls: "},
	} {
		cfg := configOf(t, server, func(cfg *valkey.Config) { of.change(&cfg.Connection) })
		if _, err := valkey.Open(t.Context(), cfg); !errors.Is(err, limiter.ErrUnavailable) || !strings.Contains(err.Error(), of.want) {
			t.Errorf("%s: got %v, want %q", name, err, of.want)
		}
	}
}

// Files of certificates that are wrong are errors of the configuration, before anything is sent.
func TestTLSFiles(t *testing.T) {
	a := newAuthority(t)
	cert, _ := a.leaf("client")
	for name, of := range map[string]valkey.TLS{
		"no authority":            {CAFile: filepath.Join(a.dir, "none")},
		"authority is no PEM":     {CAFile: a.write("der", "", nil)},
		"key of another":          {CAFile: a.file, CertFile: cert, KeyFile: filepath.Join(a.dir, "authority.key")},
		"certificate without key": {CAFile: a.file, CertFile: cert},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := valkey.Open(t.Context(), valkey.Config{Connection: valkey.Connection{TLS: &of}})
			if !errors.Is(err, limiter.ErrInvalid) {
				t.Errorf("Open: %v", err)
			}
		})
	}
}
