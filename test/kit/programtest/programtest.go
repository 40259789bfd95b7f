// Package programtest has what tests of the program share: a configuration, certificates, and a log
// that is read while it is written.
package programtest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/ratelimit/ratelimit/config"
)

// WriteFile writes a file below a directory of the test's own and returns its path.
func WriteFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TwoPerMinute is a configuration: a user has two requests a minute.
const TwoPerMinute = `
limits: {system: {rpm: 2/minute}}
domains:
- domain: shop
  rules:
  - {name: users, match: {user: "*"}, entity: "user/{user}", resource: api, consume: {rpm: hits}}
`

// Identity is a self-signed certificate with its key, and the files they are in.
type Identity struct {
	Cert, Key string
	Pair      tls.Certificate
	Pool      *x509.CertPool
}

// NewIdentity makes one for 127.0.0.1, in dir.
func NewIdentity(t *testing.T, dir, name string) Identity {
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
	id := Identity{Cert: filepath.Join(dir, name+".crt"), Key: filepath.Join(dir, name+".key"), Pool: x509.NewCertPool()}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
	for file, data := range map[string][]byte{id.Cert: certPEM, id.Key: keyPEM} {
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if id.Pair, err = tls.X509KeyPair(certPEM, keyPEM); err != nil {
		t.Fatal(err)
	}
	id.Pool.AppendCertsFromPEM(certPEM)
	return id
}

// LogBuffer is a log that can be read while it is written.
type LogBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements io.Writer.
func (b *LogBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

// String returns the log so far.
func (b *LogBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// DialPlain opens a connection without TLS that ends with the test.
func DialPlain(t *testing.T, address string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// Parsed returns the configuration of a text.
func Parsed(t *testing.T, text string) *config.Config {
	t.Helper()
	cfg, err := config.Parse("c.yaml", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Server.HTTP.Refunds, cfg.Server.HTTP.Charges = true, true // /json stands for gRPC
	return cfg
}
