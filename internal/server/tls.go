package server

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/ratelimit/ratelimit/config"
)

// MaxPEM bounds a file with certificates or a key: 1 MiB.
const MaxPEM = 1 << 20

// certificates are those of the listeners.
type certificates struct {
	log   *slog.Logger
	pairs []*reloadedPair
}

// serverTLS returns the TLS configuration of a listener; nil = plain text. section is the path of its
// keys in the configuration. The certificate is read again for each connection that finds the file
// changed, so a renewed one needs no restart. The authorities of clients are read once.
func (c *certificates) serverTLS(section string, cfg config.TLS) (*tls.Config, error) {
	if !cfg.Enabled() {
		return nil, nil //nolint:nilnil // plain text
	}
	pair := newReloadedPair(section, cfg, c.log)
	if _, err := pair.certificate(nil); err != nil {
		return nil, err
	}
	c.pairs = append(c.pairs, pair)
	out := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: pair.certificate}
	if cfg.ClientCA == "" {
		return out, nil
	}
	authorities, err := readAuthorities(section, cfg)
	if err != nil {
		return nil, err
	}
	out.ClientCAs, out.ClientAuth = authorities, tls.RequireAndVerifyClientCert
	if cfg.ClientName != "" {
		out.VerifyConnection = func(state tls.ConnectionState) error { // also of resumed sessions
			return state.PeerCertificates[0].VerifyHostname(cfg.ClientName)
		}
	}
	return out, nil
}

// readAuthorities reads the authorities of clients.
func readAuthorities(section string, cfg config.TLS) (*x509.CertPool, error) {
	pem, err := config.ReadFile(cfg.ClientCA, MaxPEM)
	if err != nil {
		return nil, fmt.Errorf("%s.client_ca: %w", section, WithoutName(err))
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(pem) {
		return nil, errors.New(section + ".client_ca: the file holds no certificate in PEM form")
	}
	return authorities, nil
}

// UnusableTLS returns why the listeners of a configuration could not start with the files
// that they name.
func UnusableTLS(cfg config.Server) (problems []error) {
	for _, l := range []struct {
		section string
		tls     config.TLS
	}{{"server.grpc.tls", cfg.GRPC.TLS}, {"server.http.tls", cfg.HTTP.TLS}, {"server.admin.tls", cfg.Admin.TLS}} {
		if !l.tls.Enabled() {
			continue
		}
		if _, err := readPair(l.section, l.tls); err != nil {
			problems = append(problems, err)
		}
		if l.tls.ClientCA == "" {
			continue
		}
		if _, err := readAuthorities(l.section, l.tls); err != nil {
			problems = append(problems, err)
		}
	}
	return problems
}

// WithoutName returns an error about a file without the file's name. The name can be the
// text of a key or a certificate, if that was written in its place.
func WithoutName(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err
	}
	return err
}

// readPair reads a certificate and its key.
func readPair(section string, cfg config.TLS) (*tls.Certificate, error) {
	cert, err := config.ReadFile(cfg.Cert, MaxPEM)
	if err != nil {
		return nil, fmt.Errorf("%s.cert: %w", section, WithoutName(err))
	}
	key, err := config.ReadFile(cfg.Key, MaxPEM)
	if err != nil {
		return nil, fmt.Errorf("%s.key: %w", section, WithoutName(err))
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("%s.cert and key: %w", section, err)
	}
	return &pair, nil
}
