package server

import (
	"crypto/tls"
	"log/slog"

	"github.com/ratelimit/ratelimit/config"
)

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
	authorities, err := config.ReadAuthorities(section+".client_ca", cfg.ClientCA)
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
		if _, err := config.ReadPair(l.section, l.tls.Cert, l.tls.Key); err != nil {
			problems = append(problems, err)
		}
		if l.tls.ClientCA == "" {
			continue
		}
		if _, err := config.ReadAuthorities(l.section+".client_ca", l.tls.ClientCA); err != nil {
			problems = append(problems, err)
		}
	}
	return problems
}
