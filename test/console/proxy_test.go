package console_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// proxyName is the name in the certificate of the proxy, which is also that of the service, and its own authority.
const proxyName = "login.auth.svc"

// newPair writes a certificate and its key to a directory.
func newPair(t *testing.T, dir string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{proxyName}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	cert, private := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
	for name, text := range map[string][]byte{"tls.crt": cert, "tls.key": private} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pair, err := tls.X509KeyPair(cert, private)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// oidc is a proxy before a service.
type oidc struct {
	address string
	user    atomic.Value // name of the user who is logged in; "" = the proxy names none
	ended   atomic.Bool  // the login has ended: the proxy sends the browser to the provider
}

// startProxy starts the proxy of a service.
func startProxy(t *testing.T, s *service, shown tls.Certificate) *oidc {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(shown.Leaf)
	p := new(oidc)
	forward := &httputil.ReverseProxy{
		Transport: &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, Certificates: []tls.Certificate{shown}}},
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "https", Host: s.admin})
			r.Out.Header.Del("X-Auth-Request-Email")
			if user := p.user.Load().(string); user != "" { //nolint:forcetypeassert // it is always one
				r.Out.Header.Set("X-Auth-Request-Email", user)
			}
		},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.ended.Load() {
			http.Redirect(w, r, "https://login.example/", http.StatusFound)
			return
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	p.address = server.URL
	return p
}

// Behind a proxy a person needs no token, and works under the name that the proxy gives. When the login at the proxy has
// ended, the page says so. A person without a role, or without a name, reads why.
func TestBehindAProxy(t *testing.T) {
	dir := t.TempDir()
	shown := newPair(t, dir)
	cert, key := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	secure := fmt.Sprintf("tls: {cert: %q, key: %q, client_ca: %q}\n    proxy: {certificate: %s, users: {ada@example.com: administer}}\n    tokens:", cert, key, cert, proxyName)
	s := startWith(t, build(t), strings.Replace(config, "tokens:", secure, 1), stores["embedded"](t), nil)
	p := startProxy(t, s, shown)
	b := openTab(startBrowser(t), t)
	p.user.Store("ada@example.com")
	b.run(t, "the first page", chromedp.Navigate(p.address+"/"), seen("#now"), unseen("#login"), unseen("#leave"), says("#service", "You are proxy:ada@example.com, role administer"))
	b.run(t, "a change", page("#limits?level=resource&resource=gpt-4"), seen("#edit"), says("#changed", "None"), fill("#lines", "rpm: 9/hour"), click("#save"), says("#changed", "in force"),
		page("#audit"), says("#audit-rows", "proxy:ada@example.com"))
	p.ended.Store(true)
	b.run(t, "the login ends", click("#audit-filter button"), seen("#login"), says("#login .problem", "The login at the proxy before this service has ended: load this page again"))
	p.ended.Store(false)
	for user, why := range map[string]string{"eve@example.com": `the user "eve@example.com" of the proxy has no role`, "": "the proxy must name one user"} {
		p.user.Store(user)
		b.run(t, "refused", chromedp.Navigate("about:blank"), chromedp.Navigate(p.address+"/"), seen("#login"), says("#login .problem", why))
	}
}
