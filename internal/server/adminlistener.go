package server

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/pkg/admin"
	"github.com/ratelimit/ratelimit/pkg/admin/controlapi"
	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// adminSide is the service of administration and its listeners. The zero value listens nowhere.
type adminSide struct {
	server    *http.Server // nil = off
	access    admin.Access
	listeners []net.Listener // the one on TCP first
	names     []string       // of the listeners, as a configuration has them
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
	uncopied := map[config.StoreType]string{
		config.StoreDynamoDB: "its table is on DynamoDB, which has backups of tables",
		config.StoreValkey:   "its table is on a Valkey or Redis server: copy the files of that server (docs/valkey.md, Backup)",
	}[s.cfg.Store.Type]
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
		Handler:           admin.NewControl(admin.ControlConfig{Access: &s.admin.access, Explainer: s.explainer(), Archive: archive, Uncopied: uncopied, Routes: operations.Routes(), Console: page, Logger: s.log}),
		Protocols:         http1,
		ReadHeaderTimeout: HTTPReadTimeout,
		ReadTimeout:       admin.ControlTimeout,
		WriteTimeout:      admin.ControlTimeout,
		IdleTimeout:       admin.ControlTimeout,
		MaxHeaderBytes:    admin.ControlMaxHeader,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	if _, tcp := cfg.Server.Admin.TCP(); !tcp {
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
	cfg.Activity = s.activity.shown(s.RLS)
	cfg.Fleet = s.fleet
	cfg.Present = s.present
	cfg.Sources = controlapi.Sources{
		Variants: func(namespace string) map[uint64]string { return s.InForce.Load().Rules.Variants(namespace) },
		Effective: func(ctx context.Context, namespace, entity, resource string, changes ...limiter.Stored) ([]limiter.EffectiveLimit, error) {
			return s.limiter.Effective(ctx, s.Clocks.Call(), namespace, entity, resource, changes...)
		},
		Dropped: func(entity, resource string, stored ...limiter.Stored) []limiter.EffectiveLimit {
			return s.InForce.Load().Snapshot.Dropped(entity, resource, stored...)
		},
		Names: func() map[string]bool {
			names, inForce := make(map[string]bool), s.InForce.Load()
			inForce.Rules.AddNames(names)
			inForce.Snapshot.AddNames(names)
			return names
		},
		Budgets: s.budgets.Load,
		Plans:   func() []string { return s.InForce.Load().Snapshot.Plans() },
		File: func() *controlapi.File {
			inForce := s.InForce.Load()
			return &controlapi.File{Rules: inForce.Rules, Static: inForce.Snapshot.Static(), Budgets: s.budgets.Load()}
		},
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

// setCredentials puts the credentials of a configuration in force.
func (a *adminSide) setCredentials(from *config.Admin) error {
	c := admin.Credentials{Tokens: make([]admin.Token, len(from.Tokens))}
	for i, t := range from.Tokens {
		hash, err := admin.ParseTokenHash(t.Hash)
		if err != nil {
			return fmt.Errorf("server.admin.tokens.%s: %w", t.Name, err)
		}
		c.Tokens[i] = admin.Token{Name: t.Name, Role: adminRole(t.Role), Hash: hash}
	}
	if p := &from.Proxy; p.Enabled() {
		c.Proxy = &admin.Proxy{
			Certificate: p.Certificate, UserHeader: p.Header, GroupsHeader: p.GroupsHeader,
			Role: adminRole(p.Role), Users: adminRoles(p.Users), Groups: adminRoles(p.Groups),
		}
	}
	a.access.Set(c)
	return nil
}

func adminRoles(from map[string]config.AdminRole) map[string]admin.Role {
	roles := make(map[string]admin.Role, len(from))
	for name, role := range from {
		roles[name] = adminRole(role)
	}
	return roles
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
