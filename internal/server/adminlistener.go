package server

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/pkg/admin"
	"github.com/ratelimit/ratelimit/pkg/admin/controlapi"
	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// adminSide is the listener of administration and its service. The zero value listens nowhere.
type adminSide struct {
	server   *http.Server // nil = off
	access   admin.Access
	listener net.Listener // nil = none
	name     string       // of the listener, as a configuration has it; "" = none
}

func (s *Service) buildAdmin(cfg *config.Config) error {
	if cfg.Server.Admin.Address == config.AdminOff {
		return nil
	}
	if err := cfg.Server.Admin.Check(); err != nil {
		return fmt.Errorf("server.admin: %w", err)
	}
	var archive admin.Archive // nil without a file
	if s.durable != nil {
		archive = s.durable
	}
	operations, err := s.operations()
	if err != nil {
		return err
	}
	page, err := admin.NewConsole()
	if err != nil {
		return err
	}
	http1 := new(http.Protocols)
	http1.SetHTTP1(true) // one request a connection at a time: its deadlines are the connection's
	s.admin.server = &http.Server{
		Handler:           admin.NewControl(admin.ControlConfig{Access: &s.admin.access, Explainer: s.explainer(), Archive: archive, Routes: operations.Routes(), Console: page, Logger: s.log}),
		Protocols:         http1,
		ReadHeaderTimeout: HTTPReadTimeout,
		ReadTimeout:       admin.ControlTimeout,
		WriteTimeout:      admin.ControlTimeout,
		IdleTimeout:       admin.ControlTimeout,
		MaxHeaderBytes:    admin.ControlMaxHeader,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	if _, socket := cfg.Server.Admin.Socket(); socket || cfg.Server.Admin.Address == "" {
		return nil
	}
	tls, err := s.certificates.serverTLS("server.admin.tls", cfg.Server.Admin.TLS)
	if err != nil {
		return err
	}
	s.admin.server.TLSConfig = tls
	return nil
}

// operations returns the endpoints of operators, on the store if that offers control.
func (s *Service) operations() (*controlapi.API, error) {
	kind := string(s.cfg.Store.Type)
	if s.durable != nil {
		kind += " with data"
	}
	cfg := ControlConfig(s.Store, kind, s.Clocks.Call)
	cfg.Activity = s.activity.shown(s.RLS.Decided)
	cfg.Sources = controlapi.Sources{
		Variants: func(namespace string) map[uint64]string { return s.InForce.Load().Rules.Variants(namespace) },
		Effective: func(ctx context.Context, namespace, entity, resource string, changes ...limiter.Stored) ([]limiter.EffectiveLimit, error) {
			return s.limiter.Effective(ctx, s.Clocks.Call(), namespace, entity, resource, changes...)
		},
		Names: func() map[string]bool {
			names, inForce := make(map[string]bool), s.InForce.Load()
			inForce.Rules.AddNames(names)
			inForce.Snapshot.AddNames(names)
			return names
		},
		Budgets: s.budgets.Load,
		Plans:   func() []string { return s.InForce.Load().Snapshot.Plans() },
	}
	return controlapi.New(cfg)
}

// ControlConfig configures the endpoints of operators on a store of a kind.
func ControlConfig(store limiter.Store, kind string, now func() time.Time) controlapi.Config {
	control, _ := store.(controlapi.Store) // without, they say so
	buckets, canAdjust := store.(limiter.Buckets)
	usage, _ := store.(limiter.Usage)
	can := store.Capabilities()
	return controlapi.Config{
		Store: control, Buckets: buckets, Usage: usage, Now: now, InMemory: kind == string(config.StoreEmbedded),
		Status: api.Status{Version: command.Version(), Store: kind, Can: api.Capabilities{Audit: can.AuditLogging, Usage: can.UsageSnapshots, Buckets: canAdjust}},
	}
}

// setTokens puts the tokens of a configuration in force.
func (a *adminSide) setTokens(from []config.AdminToken) error {
	tokens := make([]admin.Token, len(from))
	for i, t := range from {
		hash, err := admin.ParseTokenHash(t.Hash)
		if err != nil {
			return fmt.Errorf("server.admin.tokens.%s: %w", t.Name, err)
		}
		tokens[i] = admin.Token{Name: t.Name, Role: adminRole(t.Role), Hash: hash}
	}
	a.access.SetTokens(tokens)
	return nil
}

func adminRole(r config.AdminRole) admin.Role {
	switch r {
	case config.AdminRead:
		return admin.RoleRead
	case config.AdminOperate:
		return admin.RoleOperate
	case config.AdminAdminister:
		return admin.RoleAdminister
	default:
		return admin.RoleNone
	}
}

// listen opens the listener. Where the configuration names none and the usual place cannot be used,
// the service does without: decisions do not need it. There are at most that many connections.
func (a *adminSide) listen(ctx context.Context, cfg *config.Config, most int, log *slog.Logger) error {
	if a.server == nil {
		return nil
	}
	open, err := openAdmin(ctx, cfg)
	switch {
	case err == nil:
		door := admin.NewDoor(open, most)
		a.listener, a.name, a.server.ConnContext = door, adminName(open), door.ConnContext
		return nil
	case cfg.Server.Admin.Address != "":
		return fmt.Errorf("server.admin.address, or --admin-address: %w", err)
	}
	log.WarnContext(ctx, "there is no admin socket: name another place with server.admin.address, or say off", "error", err)
	a.server = nil
	return nil
}

func openAdmin(ctx context.Context, cfg *config.Config) (net.Listener, error) {
	path, err := AdminSocket(cfg)
	switch {
	case err != nil:
		return nil, err
	case path != "":
		return ListenSocket(ctx, path)
	case cfg.Server.Admin.Address == "":
		return ListenSocketRun(ctx)
	}
	var lc net.ListenConfig
	return lc.Listen(ctx, "tcp", cfg.Server.Admin.Address)
}

// AdminSocket returns the path of the socket that a configuration names, or has in its data
// directory. "" means that it has another listener, or a socket in the run directory.
func AdminSocket(cfg *config.Config) (string, error) {
	path, named := cfg.Server.Admin.Socket()
	if !named {
		dir := cfg.Store.Embedded.Data
		if cfg.Server.Admin.Address != "" || cfg.Store.Type != config.StoreEmbedded || dir == "" {
			return "", nil
		}
		path = filepath.Join(dir, SocketName)
	}
	return filepath.Abs(path)
}

func adminName(l net.Listener) string {
	if socket, ok := l.(*SocketListener); ok {
		return "unix:" + socket.Path()
	}
	return l.Addr().String()
}

// serve answers until the server is closed.
func (a *adminSide) serve() error {
	if a.listener == nil {
		return nil
	}
	return serveHTTP(a.server, a.listener)
}
