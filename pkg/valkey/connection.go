package valkey

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/redis/rueidis"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

const (
	// DefaultConnectTimeout bounds each of connecting and the TLS handshake.
	DefaultConnectTimeout = time.Second
	// silenceTimeout is after how long without any answer a connection is given up.
	silenceTimeout = 2 * time.Second
)

// Connection says where the server is, and how it is reached. The zero Connection is that of a server on
// this machine, at 127.0.0.1:6379.
type Connection struct {
	Addresses []string // of the server, of sentinels, or of servers of a cluster: host:port; default 127.0.0.1:6379
	Master    string   // the name that sentinels have for the server; "" = Addresses are of the server itself
	Database  int      // 0 to 15, and more where the server has them
	Login     Login
	Sentinel  Login // of the sentinels
	TLS       *TLS  // nil = none; also that of sentinels
}

// Login is a user and its password.
type Login struct {
	User         string // "" = default
	Password     string // "" = none, or that of PasswordFile
	PasswordFile string // read at each connection, so that a new password needs no restart
}

// TLS says how a server is verified, and how this program is.
type TLS struct {
	CAFile     string // PEM; "" = the system's
	CertFile   string // PEM, with KeyFile; "" = none
	KeyFile    string
	ServerName string // "" = the host of the address
}

// password returns the password now.
func (l *Login) password() (string, error) {
	if l.PasswordFile == "" {
		return l.Password, nil
	}
	b, err := os.ReadFile(l.PasswordFile)
	if err != nil {
		return "", fmt.Errorf("the password of the server: %w", err)
	}
	return strings.TrimRight(string(b), "\r\n"), nil
}

// config returns the configuration of TLS. Certificates are read at each connection.
func (t *TLS) config() (*tls.Config, error) {
	if t == nil {
		return nil, nil //nolint:nilnil // none, and no error
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if t.CAFile != "" {
		b, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, fmt.Errorf("%w: the certificate authority of the server: %w", limiter.ErrInvalid, err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(b) {
			return nil, fmt.Errorf("%w: %s has no certificate in PEM", limiter.ErrInvalid, t.CAFile)
		}
	}
	if t.CertFile != "" {
		if _, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile); err != nil {
			return nil, fmt.Errorf("%w: the certificate for the server: %w", limiter.ErrInvalid, err)
		}
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
			return &pair, err
		}
	}
	return c, nil
}

// options returns those of the client. It does not retry: a write that was applied and whose reply was
// lost would be applied twice.
func (c *Connection) options() (rueidis.ClientOption, error) {
	secure, err := c.TLS.config()
	if err != nil {
		return rueidis.ClientOption{}, err
	}
	o := rueidis.ClientOption{
		SelectDB: c.Database, ClientName: "ratelimit", ClientSetInfo: rueidis.DisableClientSetInfo, TLSConfig: secure,
		Dialer:       net.Dialer{Timeout: DefaultConnectTimeout, KeepAlive: time.Second},
		DisableRetry: true, DisableCache: true, ForceSingleClient: c.Master == "", ConnWriteTimeout: silenceTimeout,
		PipelineMultiplex: -1, // one connection, so that a process has to do with one server
	}
	if c.Master != "" {
		o.Sentinel = rueidis.SentinelOption{MasterSet: c.Master, Dialer: o.Dialer, TLSConfig: secure, ClientName: "ratelimit"}
		o.Sentinel.Dialer.ControlContext = toSentinel
	}
	if c.Login == (Login{}) && c.Sentinel == (Login{}) {
		return o, nil
	}
	o.AuthCredentialsFn = func(at rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) {
		login := &c.Login
		if _, ok := at.Address.(sentinelAddress); ok {
			login = &c.Sentinel
		}
		password, err := login.password()
		return rueidis.AuthCredentials{Username: login.User, Password: password}, err
	}
	return o, nil
}

// toSentinel marks the dialer of sentinels, and does nothing. The login depends on the
// peer, and an address does not tell a sentinel: sentinels have names, and name each other by numbers.
func toSentinel(context.Context, string, string, syscall.RawConn) error { return nil }

// sentinelAddress is the address of a sentinel.
type sentinelAddress struct{ net.Addr }

// sentinelConn is a connection to a sentinel.
type sentinelConn struct{ net.Conn }

func (c sentinelConn) RemoteAddr() net.Addr { return sentinelAddress{c.Conn.RemoteAddr()} }

// dial connects to a server, or to a sentinel by the dialer of these.
func dial(ctx context.Context, address string, dialer *net.Dialer, secure *tls.Config) (conn net.Conn, err error) {
	conn, err = dialer.DialContext(ctx, "tcp", address)
	if err == nil && secure != nil {
		conn, err = handshake(ctx, conn, address, secure)
	}
	if err == nil && dialer.ControlContext != nil {
		conn = sentinelConn{conn}
	}
	return conn, err
}

// handshake begins TLS on a connection, and closes the connection where the peer does not go along.
func handshake(ctx context.Context, conn net.Conn, address string, secure *tls.Config) (net.Conn, error) {
	ctx, stop := context.WithTimeout(ctx, DefaultConnectTimeout)
	defer stop()
	if secure.ServerName == "" {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		secure = secure.Clone()
		secure.ServerName = host
	}
	over := tls.Client(conn, secure)
	if err := over.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		if errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("it accepts connections, and does not answer TLS, which its port may not speak: %w", err)
		}
		return nil, err
	}
	return over, nil
}

// ended adds to an error why the peer may have ended a connection.
func (c *Connection) ended(err error) error {
	switch {
	case !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET):
		return err
	case c.TLS == nil:
		return fmt.Errorf("it ends connections, and it may want TLS: %w", err)
	case c.TLS.CertFile == "":
		return fmt.Errorf("it ends connections, and it may want a certificate of this service: %w", err)
	}
	return err
}

// check reports why no connection can be made.
func (c *Connection) check() error {
	for _, a := range c.Addresses {
		if _, _, err := net.SplitHostPort(a); err != nil {
			return fmt.Errorf("%w: address %.100q of the server: want host:port, such as 127.0.0.1:6379", limiter.ErrInvalid, a)
		}
	}
	_, err := c.options()
	return err
}

// dial makes a client of the server at an address, or of the one that sentinels name. It connects until ctx ends.
func (c *Connection) dial(ctx context.Context, addresses ...string) (rueidis.Client, error) {
	o, err := c.options()
	if err != nil {
		return nil, err
	}
	o.InitAddress = addresses
	o.DialCtxFn = func(_ context.Context, address string, dialer *net.Dialer, secure *tls.Config) (net.Conn, error) {
		return dial(ctx, address, dialer, secure)
	}
	client, err := rueidis.NewClient(o)
	if answer, ok := rueidis.IsRedisErr(err); ok {
		return nil, answered(strings.Join(addresses, ", "), answer)
	}
	if err != nil {
		return nil, fmt.Errorf("the server of the store at %s cannot be reached: %w", strings.Join(addresses, ", "), c.ended(err))
	}
	return client, nil
}

// answered is an answer of a server to which no connection can be made. A permission that is missing, and a database that
// a cluster does not have, stay so until something is changed.
func answered(address string, answer error) error {
	err := fmt.Errorf("the server of the store at %s answers: %w", address, answer)
	switch text := answer.Error(); {
	case strings.HasPrefix(text, "SELECT is not allowed"):
		return fmt.Errorf("%w: store.valkey.database must be 0 in a cluster: %w", limiter.ErrInvalid, err)
	case strings.HasPrefix(text, "NOPERM"):
		return fmt.Errorf("%w: %w", limiter.ErrInvalid, err)
	}
	return err
}
