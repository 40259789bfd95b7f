package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

// client is how a command reaches the HTTP side of a running service.
type client struct {
	server    string // its address
	ca        string // file of the authorities to trust; "" = those of the system
	cert, key string // files of the certificate to show, if any
}

func (c *client) flags(cmd *cobra.Command, server string) {
	cmd.Flags().StringVar(&c.server, "server", server, "address of a running service's HTTP side, such as http://127.0.0.1:8080")
	cmd.Flags().StringVar(&c.ca, "ca", "", "PEM file of the authorities that the service's certificate may be of (default: those of the system)")
	cmd.Flags().StringVar(&c.cert, "cert", "", "PEM file of the certificate to show to a service that wants one")
	cmd.Flags().StringVar(&c.key, "key", "", "PEM file of its private key")
}

// do sends a request and returns the answer if it is 200. Its body is to be closed.
func (c *client) do(req *http.Request) (*http.Response, error) {
	transport, err := c.transport()
	if err != nil {
		return nil, err
	}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return nil, failed(fmt.Errorf("asking the service: %w", err))
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer func() { _ = resp.Body.Close() }()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 1024))
	return nil, failed(fmt.Errorf("%s answers %s: %s", req.URL.Redacted(), resp.Status, bytes.TrimSpace(text)))
}

func (c *client) transport() (*http.Transport, error) {
	// One request: no connection is worth keeping.
	t := &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}}
	if c.ca != "" {
		pem, err := os.ReadFile(c.ca)
		if err != nil {
			return nil, fmt.Errorf("--ca: %w", err)
		}
		t.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !t.TLSClientConfig.RootCAs.AppendCertsFromPEM(pem) {
			return nil, errors.New("--ca: " + c.ca + " holds no certificate in PEM form")
		}
	}
	if c.cert != "" || c.key != "" {
		if c.cert == "" || c.key == "" {
			return nil, errors.New("--cert and --key belong together: give both, or neither")
		}
		pair, err := tls.LoadX509KeyPair(c.cert, c.key)
		if err != nil {
			return nil, fmt.Errorf("--cert and --key: %w", err)
		}
		t.TLSClientConfig.Certificates = []tls.Certificate{pair}
	}
	return t, nil
}

// url returns the address of a path.
func (c *client) url(path string) string {
	base := strings.TrimSuffix(c.server, "/")
	if !strings.Contains(base, "://") {
		base = "http://" + base
	}
	return base + path
}
