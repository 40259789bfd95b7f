package cli

import (
	"crypto/tls"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"
)

// A service that demands a certificate ends the handshake with an alert, which is a refusal.
func TestAlertIsRefusal(t *testing.T) {
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS12}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	for range 20 { // the alert arrives during the write or the read
		resp, err := s.Client().Get(s.URL)
		if err == nil {
			_ = resp.Body.Close()
			t.Fatal("a request without a certificate was answered")
		}
		if !isRefusal(err) {
			t.Fatalf("%v is taken for an outage", err)
		}
	}
}
