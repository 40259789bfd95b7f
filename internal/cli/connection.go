package cli

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/internal/server"
)

// TokenVariable is the environment variable that commands take a token from.
const TokenVariable = "RATELIMIT_TOKEN"

// idleConnections bounds the connections that a command keeps from one request to the next.
const idleConnections = 8

// connection is how a command reaches a running service.
type connection struct {
	server    string // its address; "" = the socket that find finds
	ca        string // file of the authorities to trust; "" = those of the system
	cert, key string // files of the certificate to show, if any
	tokenFile string // of the token to show; "" = that of tokenEnv
	tokenEnv  string // variable with the token to show; "" = tokenVariable

	context   string // name of the context to use; "" = none was named
	used      string // name of the context that is used; "" = none
	way       string // that the server was found by, for people
	namespace string // of the context that is used; "" = the default

	opening sync.Once
	opened  *http.Transport // of all requests, made by the first
	failure error           // of making it
}

func (c *connection) flags(flags *pflag.FlagSet, usage string) {
	flags.StringVar(&c.server, "server", "", usage)
	flags.StringVar(&c.context, "context", "", "context of the service to ask, see ratelimit context (default: the environment variable "+ContextVariable+"; else the one in use)")
	flags.StringVar(&c.ca, "ca", "", "PEM file of the authorities that the service's certificate may be of (default: those of the system)")
	flags.StringVar(&c.cert, "cert", "", "PEM file of the certificate to show to a service that wants one")
	flags.StringVar(&c.key, "key", "", "PEM file of its private key")
	flags.StringVar(&c.tokenFile, "token-file", "", "file with the token to show to a service that wants one (default: the environment variable "+TokenVariable+")")
}

// ServerVariable is the environment variable that commands of administration take a server
// from.
const ServerVariable = "RATELIMIT_SERVER"

// adminUsage is that of --server for commands of administration.
const adminUsage = "admin listener of a running service: unix:///PATH or https://HOST:PORT (default: the environment variable " + ServerVariable + "; else its socket, found by --config, --data or in the run directory)"

// do sends a request and returns the answer if it is 200. Its body is to be closed.
func (c *connection) do(req *http.Request) (*http.Response, error) {
	resp, err := c.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer func() { _ = resp.Body.Close() }()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 4096))
	var answer struct {
		Error  string `json:"error"`
		Detail string `json:"detail"` // of a problem
	}
	if json.Unmarshal(text, &answer) == nil && answer.Error+answer.Detail != "" {
		text = []byte(cmp.Or(answer.Detail, answer.Error))
	}
	return nil, c.refused(req, resp.StatusCode, string(bytes.TrimSpace(text)))
}

// refused says that the service refused a request, and why.
func (c *connection) refused(req *http.Request, status int, why string) error {
	if status == http.StatusUnauthorized && req.Header.Get("Authorization") == "" {
		why += "; this command takes one from --token-file, or from " + TokenVariable
	}
	place := req.URL.Redacted()
	if _, ok := c.socket(); ok {
		place = c.server
	}
	return command.Failed(fmt.Errorf("%s answers %d %s: %s", place, status, http.StatusText(status), why))
}

// Do sends a request with the credential of the flags, and returns the answer as it is.
func (c *connection) Do(req *http.Request) (*http.Response, error) {
	c.opening.Do(func() { c.opened, c.failure = c.transport() })
	err := c.failure
	if err == nil {
		err = c.authorize(req)
	}
	if err != nil {
		return nil, command.Misused(err)
	}
	// A redirect would show the token to another service.
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := (&http.Client{Transport: c.opened, CheckRedirect: stay}).Do(req)
	if err != nil {
		if isRefusal(err) {
			return nil, command.Failed(c.unreachable(err))
		}
		return nil, command.Unanswered(c.unreachable(err))
	}
	return resp, nil
}

// isRefusal reports whether the service, or this command, would not go on for want of a
// certificate.
func isRefusal(err error) bool {
	_, unknown := errors.AsType[*tls.CertificateVerificationError](err)
	remote, ok := errors.AsType[*net.OpError](err) // crypto/tls wraps an alert of the service in it
	return unknown || ok && remote.Op == "remote error"
}

// unreachable says why there is no answer, and for common reasons how to get one.
func (c *connection) unreachable(err error) error {
	if c.used != "" {
		return fmt.Errorf("context %s: %w", c.used, c.noAnswer(err))
	}
	return c.noAnswer(err)
}

func (c *connection) noAnswer(err error) error {
	path, socket := c.socket()
	switch {
	case socket && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED)):
		return fmt.Errorf("no service answers at %s: start it, or name its admin listener with --server", path)
	case socket && errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s is for the user of the service and for root: run this command as one of them, or use a token over TCP", path)
	case strings.Contains(err.Error(), "malformed HTTP"):
		return fmt.Errorf("%s does not speak HTTP as expected: it may be the address of gRPC, or need https://", c.server)
	default:
		return fmt.Errorf("asking the service: %w", err)
	}
}

// authorize shows the token, if there is one; not where it could be read on the network.
func (c *connection) authorize(req *http.Request) error {
	token := os.Getenv(cmp.Or(c.tokenEnv, TokenVariable))
	if c.tokenFile != "" {
		text, err := config.ReadFile(c.tokenFile, config.MaxPEM)
		if err != nil {
			return fmt.Errorf("--token-file: %w", config.WithoutName(err))
		}
		token = string(text)
	}
	token = strings.TrimSpace(token)
	if _, socket := c.socket(); token == "" || socket {
		return nil
	}
	if req.URL.Scheme != "https" && !config.IsLoopback(req.URL.Hostname()) {
		return fmt.Errorf("--server is %s, where the token could be read on the network: use https", c.server)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	return nil
}

// socket returns the path of the Unix socket that the server is.
func (c *connection) socket() (path string, ok bool) {
	path, ok = strings.CutPrefix(c.server, "unix:")
	if rest, slashes := strings.CutPrefix(path, "//"); slashes {
		path = rest
	}
	return path, ok
}

func (c *connection) transport() (*http.Transport, error) {
	t := &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
		MaxIdleConnsPerHost: idleConnections, IdleConnTimeout: time.Second, // a service closes idle ones after 30 s or more
	}
	if path, ok := c.socket(); ok {
		t.Proxy = nil
		t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			path, err := filepath.Abs(path)
			if err != nil {
				return nil, err
			}
			return server.DialSocket(ctx, path)
		}
	}
	if c.ca != "" {
		pem, err := config.ReadFile(c.ca, config.MaxPEM)
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
func (c *connection) url(path string) string {
	if _, ok := c.socket(); ok {
		return "http://localhost" + path
	}
	base := strings.TrimSuffix(c.server, "/")
	if !strings.Contains(base, "://") {
		base = "http://" + base
	}
	return base + path
}

// useContext has the connection reach the service of a context: the named one, else the one in
// use. It reports whether there is one. Flags of the command win over those of the context.
func (c *connection) useContext(name string) (bool, error) {
	f, err := loadContexts()
	if err != nil {
		return false, err
	}
	name = cmp.Or(name, currentContext(f))
	if name == "" {
		return false, nil
	}
	from, err := f.Find(name)
	if err != nil {
		return false, err
	}
	if from.TokenEnv != "" && c.tokenFile == "" && os.Getenv(from.TokenEnv) == "" {
		return false, fmt.Errorf("context %s: its token is in the environment variable %s, which is not set", name, from.TokenEnv)
	}
	c.used, c.server, c.namespace = name, from.Server, from.Namespace
	c.way = "by the context " + name
	c.ca = cmp.Or(c.ca, from.CA)
	if c.cert == "" && c.key == "" {
		c.cert, c.key = from.Cert, from.Key
	}
	if c.tokenFile == "" {
		c.tokenFile, c.tokenEnv = from.TokenFile, from.TokenEnv
	}
	return true, nil
}
