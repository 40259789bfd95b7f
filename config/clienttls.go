package config

import (
	"crypto/tls"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/ratelimit/ratelimit/config/yamlcfg"
)

// ClientTLS is TLS to another service. It names files in PEM form.
type ClientTLS struct {
	Enabled bool
	CA      string // authorities of the other service; "" = those of the system
	Cert    string // of this service; "" = it shows none
	Key     string
	Name    string // in the certificate of the other service; "" = the host of the address
}

func (t *ClientTLS) schema(path, of string) yamlcfg.Schema {
	return yamlcfg.Object{Title: path, Keys: []yamlcfg.Key{
		key("ca", "authorities of "+of, yamlcfg.Name(&t.CA)),
		key("cert", "certificate of this service", yamlcfg.Name(&t.Cert)),
		key("key", "its private key", yamlcfg.Name(&t.Key)),
		key("name", "name in the certificate of "+of, yamlcfg.Name(&t.Name)),
	}}.Then(func(n yamlcfg.Node, _ bool) {
		if (t.Cert == "") != (t.Key == "") {
			n.Failf("needs both cert and key, or neither")
		}
	})
}

// Credentials reads the files. path is the place of the settings, for errors.
func (t *ClientTLS) Credentials(path string) (credentials.TransportCredentials, error) {
	if !t.Enabled {
		return insecure.NewCredentials(), nil
	}
	secure := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.Name}
	if t.CA != "" {
		var err error
		if secure.RootCAs, err = ReadAuthorities(path+".ca", t.CA); err != nil {
			return nil, err
		}
	}
	if t.Cert != "" {
		pair, err := ReadPair(path, t.Cert, t.Key)
		if err != nil {
			return nil, err
		}
		secure.Certificates = []tls.Certificate{*pair}
	}
	return credentials.NewTLS(secure), nil
}
