package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/internal/server/guard"
	"github.com/ratelimit/ratelimit/pkg/admin"
)

// httpSide is the listener of the HTTP side and its server.
type httpSide struct {
	server   *http.Server
	listener net.Listener
}

// listen opens the listener at the address of a key; "" = there is none.
func (h *httpSide) listen(ctx context.Context, key, address string) error {
	if address == "" {
		return nil
	}
	var lc net.ListenConfig
	var err error
	if h.listener, err = lc.Listen(ctx, "tcp", address); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

// onlyAddresses refuses requests to a loopback address under another name, which a page in a browser may send.
func onlyAddresses(h http.Handler, address string) http.Handler {
	host, _, _ := net.SplitHostPort(address) // it was checked
	return admin.OnlyAddresses(h, config.IsLoopback(host))
}

// build makes the server. A nil configuration of TLS is plain text.
func (h *httpSide) build(secure *tls.Config, log *slog.Logger, handler http.Handler) {
	http1 := new(http.Protocols)
	http1.SetHTTP1(true) // one request a connection at a time: a bound of connections is a bound of requests
	h.server = &http.Server{
		Handler:           handler,
		Protocols:         http1,
		TLSConfig:         secure,
		ReadHeaderTimeout: HTTPReadTimeout,
		ReadTimeout:       HTTPReadTimeout,
		WriteTimeout:      httpWriteTimeout,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    httpMaxHeader,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// serve answers until the server is stopped.
func (h *httpSide) serve(watch *guard.Guard) error {
	return serveHTTP(h.server, watch.Listener(h.listener))
}

// serveHTTP answers until the server is stopped, with TLS where it is configured.
func serveHTTP(server *http.Server, listener net.Listener) error {
	var err error
	if server.TLSConfig != nil {
		err = server.ServeTLS(listener, "", "")
	} else {
		err = server.Serve(listener)
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// stopHTTP lets the requests in flight end, for at most a time. A nil server is none. The
// error says why connections were cut.
func stopHTTP(ctx context.Context, server *http.Server, atMost time.Duration) error {
	if server == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	err := server.Shutdown(ctx)
	if err != nil {
		_ = server.Close() // Shutdown has left them; a backup must not hold up the store's end
	}
	return err
}
