package server

import (
	"context"
	"crypto"
	"crypto/tls"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/ratelimit/ratelimit/config"
)

// reloadedPair is a certificate with its key that follows its files.
type reloadedPair struct {
	section string // of the configuration, for errors
	cfg     config.TLS
	log     *slog.Logger
	places  signers

	mu       sync.Mutex
	modified [2]time.Time // of the files when they were read
	refused  [2]time.Time // of the files that could not be used and were reported
	pair     *tls.Certificate
}

func newReloadedPair(section string, cfg config.TLS, log *slog.Logger) *reloadedPair {
	return &reloadedPair{section: section, cfg: cfg, log: log, places: newSigners()}
}

// certificate returns the certificate of the files as they are now. While the new
// files cannot be used, as in the middle of a renewal, it returns the one before.
func (p *reloadedPair) certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	modified, refused := p.times(), p.refused
	if p.pair != nil && modified == p.modified {
		return p.pair, nil
	}
	switch err := p.load(modified); {
	case err == nil:
	case p.pair == nil:
		return nil, err
	case modified != refused: // else every connection would say so
		p.log.Error("the new certificate is not used", "cert", p.cfg.Cert, "key", p.cfg.Key, "error", err)
	}
	return p.pair, nil
}

// read reads the files, whether they have changed or not, and logs the outcome.
func (p *reloadedPair) read(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.load(p.times()); err != nil {
		p.log.ErrorContext(ctx, "the new certificate is not used", "cert", p.cfg.Cert, "key", p.cfg.Key, "error", err)
		return
	}
	p.log.InfoContext(ctx, "certificate loaded", "cert", p.cfg.Cert, "key", p.cfg.Key)
}

func (p *reloadedPair) times() [2]time.Time {
	return [2]time.Time{modTime(p.cfg.Cert), modTime(p.cfg.Key)}
}

// load reads the files, which were changed at these times.
func (p *reloadedPair) load(modified [2]time.Time) error {
	pair, err := config.ReadPair(p.section, p.cfg.Cert, p.cfg.Key)
	if err != nil {
		p.refused = modified
		return err
	}
	if key, ok := pair.PrivateKey.(crypto.Signer); ok {
		pair.PrivateKey = signer{key, p.places}
	}
	p.pair, p.modified = pair, modified
	return nil
}

// modTime returns when a file was last changed; zero when it is not there.
func modTime(name string) time.Time {
	info, err := os.Stat(name)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}
