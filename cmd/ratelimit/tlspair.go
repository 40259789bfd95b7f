package main

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/ratelimit/ratelimit/config"
)

// reloadedPair is a certificate with its key that follows its files.
type reloadedPair struct {
	cfg config.TLS
	log *slog.Logger

	mu       sync.Mutex
	modified [2]time.Time // of the files when they were read
	refused  [2]time.Time // of the files that could not be used and were reported
	pair     *tls.Certificate
}

// certificate returns the certificate of the files as they are now; of those that
// were there before when the new ones cannot be used, as in the middle of a renewal.
func (p *reloadedPair) certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	modified := [2]time.Time{modTime(p.cfg.Cert), modTime(p.cfg.Key)}
	if p.pair != nil && modified == p.modified {
		return p.pair, nil
	}
	pair, err := tls.LoadX509KeyPair(p.cfg.Cert, p.cfg.Key)
	if err != nil {
		if p.pair != nil {
			if modified != p.refused { // else every connection would say so
				p.refused = modified
				p.log.Error("the new certificate is not used", "cert", p.cfg.Cert, "key", p.cfg.Key, "error", err)
			}
			return p.pair, nil
		}
		return nil, fmt.Errorf("cert and key: %w", err)
	}
	p.pair, p.modified = &pair, modified
	return p.pair, nil
}

// modTime returns when a file was last changed; zero when it is not there.
func modTime(name string) time.Time {
	info, err := os.Stat(name)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}
