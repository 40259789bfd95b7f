package programtest

import (
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
	"testing"
	"time"
)

// Identity is a certificate with its key, and the files they are in.
type Identity struct {
	Cert, Key string
	Pair      tls.Certificate
	Pool      *x509.CertPool // of the certificate
}

// NewIdentity makes a self-signed one for 127.0.0.1, in dir.
func NewIdentity(t *testing.T, dir, name string) Identity {
	t.Helper()
	return newIdentity(t, dir, name, &x509.Certificate{
		Subject:     pkix.Name{CommonName: name},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, nil)
}

// Issue makes the certificate of a client by this one as its authority, with the names and the times
// of a template. It is good for an hour where the template has no time.
func (id Identity) Issue(t *testing.T, name string, template x509.Certificate) Identity {
	t.Helper()
	template.KeyUsage, template.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return newIdentity(t, filepath.Dir(id.Cert), name, &template, &id)
}

// newIdentity makes a certificate by an authority; nil = by itself.
func newIdentity(t *testing.T, dir, name string, template *x509.Certificate, by *Identity) Identity {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	if template.NotAfter.IsZero() {
		template.NotAfter = time.Now().Add(time.Hour)
	}
	template.NotBefore = template.NotAfter.Add(-2 * time.Hour)
	parent, signer := template, any(private)
	if by != nil {
		parent, signer = by.Pair.Leaf, by.Pair.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &private.PublicKey, signer)
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
