package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/pkg/admin"
)

// listen opens the listeners: the socket, and the address on TCP if the configuration names one. Where
// the configuration names no socket and the usual place cannot be used, the service does without:
// decisions do not need it. There are at most that many connections in all.
func (a *adminSide) listen(ctx context.Context, cfg *config.Config, most int, log *slog.Logger) error {
	if a.server == nil {
		return nil
	}
	err := a.open(ctx, cfg, log)
	if err != nil {
		return errors.Join(fmt.Errorf("server.admin.address, or --admin-address: %w", err), a.close())
	}
	if len(a.listeners) == 0 {
		a.server = nil
		return nil
	}
	for i, l := range a.listeners { // each has its share, so that strangers on TCP leave the socket free
		door := admin.NewDoor(l, max(most/len(a.listeners), 1))
		a.listeners[i], a.server.ConnContext = door, door.ConnContext // which is the same for all
	}
	return nil
}

// open opens the listeners that a configuration has.
func (a *adminSide) open(ctx context.Context, cfg *config.Config, log *slog.Logger) error {
	if address, tcp := cfg.Server.Admin.TCP(); tcp {
		var lc net.ListenConfig
		l, err := lc.Listen(ctx, "tcp", address)
		if err != nil {
			return err
		}
		a.add(l, l.Addr().String())
	}
	socket, err := openSocket(ctx, cfg)
	_, named := cfg.Server.Admin.Socket()
	switch {
	case err == nil:
		a.add(socket, "unix:"+socket.Path())
		if !named && AdminSocket(cfg) != "" {
			a.openSecond(ctx, log)
		}
	case named:
		return err
	case len(a.listeners) > 0:
		log.WarnContext(ctx, "there is no admin socket beside server.admin.address: RATELIMIT_RUN_DIR names another directory for it", "error", err)
	default:
		log.WarnContext(ctx, "there is no admin socket: name another place with server.admin.address, or say off", "error", err)
	}
	return nil
}

// add adds a listener, by the name that a configuration has.
func (a *adminSide) add(l net.Listener, name string) {
	a.listeners, a.names = append(a.listeners, l), append(a.names, name)
}

// openSecond opens a socket in the run directory, beside that in a data directory. Commands find it without
// flags; those with --data do not need it.
func (a *adminSide) openSecond(ctx context.Context, log *slog.Logger) {
	socket, err := ListenSocketRun(ctx)
	if err != nil {
		log.DebugContext(ctx, "there is no second admin socket in a run directory: commands need --data", "error", err)
		return
	}
	a.add(socket, "unix:"+socket.Path())
}

func openSocket(ctx context.Context, cfg *config.Config) (*SocketListener, error) {
	name := AdminSocket(cfg)
	if name == "" {
		return ListenSocketRun(ctx)
	}
	path, err := filepath.Abs(name)
	if err != nil {
		return nil, err
	}
	return ListenSocket(ctx, path)
}

// AdminSocket returns the path of the socket that a configuration names, or has in its data
// directory. It may be relative to the working directory of serve. "" means that the socket is in
// the run directory, or is off.
func AdminSocket(cfg *config.Config) string {
	path, named := cfg.Server.Admin.Socket()
	dir := cfg.Store.Embedded.Data
	switch {
	case named:
		return path
	case cfg.Server.Admin.Address == config.AdminOff || cfg.Store.Type != config.StoreEmbedded || dir == "":
		return ""
	default:
		return filepath.Join(dir, SocketName)
	}
}

// name is where the service listens, for the log.
func (a *adminSide) name() string { return cmp.Or(strings.Join(a.names, ","), config.AdminOff) }

// close closes the listeners of a service that does not start.
func (a *adminSide) close() error {
	var all error
	for _, l := range a.listeners {
		all = errors.Join(all, l.Close())
	}
	return all
}

// serve answers at a listener until the server is closed. TLS is for the network alone.
func (a *adminSide) serve(l net.Listener) error {
	if a.server.TLSConfig != nil && l.Addr().Network() != "unix" {
		return serveHTTP(a.server, l)
	}
	if err := a.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
