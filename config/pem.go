package config

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
)

// MaxPEM bounds a file with certificates or a key: 1 MiB.
const MaxPEM = 1 << 20

// WithoutName returns an error about a file without the file's name. The name can be the
// text of a key or a certificate, if that was written in its place.
func WithoutName(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err
	}
	return err
}

// ReadAuthorities reads a file with the certificates of authorities. Errors begin with key, its place in the
// configuration.
func ReadAuthorities(key, name string) (*x509.CertPool, error) {
	pem, err := ReadFile(name, MaxPEM)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, WithoutName(err))
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(pem) {
		return nil, errors.New(key + ": the file holds no certificate in PEM form")
	}
	return authorities, nil
}

// ReadPair reads a certificate and its key. Errors begin with section, the place of both in the configuration.
func ReadPair(section, certName, keyName string) (*tls.Certificate, error) {
	cert, err := ReadFile(certName, MaxPEM)
	if err != nil {
		return nil, fmt.Errorf("%s.cert: %w", section, WithoutName(err))
	}
	key, err := ReadFile(keyName, MaxPEM)
	if err != nil {
		return nil, fmt.Errorf("%s.key: %w", section, WithoutName(err))
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("%s.cert and key: %w", section, err)
	}
	return &pair, nil
}
