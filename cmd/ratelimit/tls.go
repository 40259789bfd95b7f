package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/ratelimit/ratelimit/config"
)

// serverTLS returns the TLS configuration of a listener. The certificate is read
// again for each connection that finds the file changed, so that a renewed one
// needs no restart; the authorities of clients are read once.
func serverTLS(cfg config.TLS, log *slog.Logger) (*tls.Config, error) {
	pair := &reloadedPair{cfg: cfg, log: log}
	if _, err := pair.certificate(nil); err != nil {
		return nil, err
	}
	out := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: pair.certificate}
	if cfg.ClientCA == "" {
		return out, nil
	}
	pem, err := os.ReadFile(cfg.ClientCA)
	if err != nil {
		return nil, fmt.Errorf("client_ca: %w", err)
	}
	out.ClientCAs = x509.NewCertPool()
	if !out.ClientCAs.AppendCertsFromPEM(pem) {
		return nil, errors.New("client_ca: " + cfg.ClientCA + " holds no certificate in PEM form")
	}
	out.ClientAuth = tls.RequireAndVerifyClientCert
	return out, nil
}
