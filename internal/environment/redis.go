package environment

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/config/yamlcfg"
)

// redisServer is the parts of the settings of a Redis server.
type redisServer struct {
	backend, url, kind, socket string
	auth, sentinelAuth         string
	tls                        bool
	ca, cert, key              string
}

// redisServers are the variables of the server.
func redisServers() []variable {
	text := func(name string, of func(r *redisServer) *string) variable {
		return own(name, parseText, func(s *Settings, value string) { *of(&s.redis) = value })
	}
	return []variable{
		own("BACKEND_TYPE", parseBackend, func(s *Settings, name string) { s.redis.backend = name }),
		text("REDIS_URL", func(r *redisServer) *string { return &r.url }),
		text("REDIS_TYPE", func(r *redisServer) *string { return &r.kind }),
		text("REDIS_SOCKET_TYPE", func(r *redisServer) *string { return &r.socket }),
		text("REDIS_AUTH", func(r *redisServer) *string { return &r.auth }),
		text("REDIS_SENTINEL_AUTH", func(r *redisServer) *string { return &r.sentinelAuth }),
		own("REDIS_TLS", parseBool, func(s *Settings, on bool) { s.redis.tls = on }),
		text("REDIS_TLS_CACERT", func(r *redisServer) *string { return &r.ca }),
		text("REDIS_TLS_CLIENT_CERT", func(r *redisServer) *string { return &r.cert }),
		text("REDIS_TLS_CLIENT_KEY", func(r *redisServer) *string { return &r.key }),
	}
}

// use makes the server the store, unless variables of ours name another one.
func (r *redisServer) use(s *Settings, lookup Lookup) error {
	if r.url == "" || r.backend != "" && r.backend != "redis" || hasOwnStore(lookup) {
		return nil
	}
	at, err := r.settings()
	if err == nil {
		s.useServer(at)
	}
	return err
}

// parseBackend reads the kind of a store, as that service does.
func parseBackend(value string) (string, error) {
	if value != "redis" && value != "memcache" {
		return "", fmt.Errorf("%.20q must be redis or memcache", value)
	}
	return value, nil
}

// settings returns the server. No error repeats a value, which may have a password.
func (r *redisServer) settings() (at config.Valkey, err error) {
	if r.socket != "" && r.socket != "tcp" {
		return at, fmt.Errorf("REDIS_SOCKET_TYPE: %.20q must be tcp: the server has an address, host:port", r.socket)
	}
	switch strings.ToUpper(r.kind) {
	case "", "SINGLE":
		err = parseServer(r.url, &at)
	case "SENTINEL":
		names := strings.Split(r.url, ",")
		at.Master, at.Addresses = names[0], names[1:]
		if at.Master == "" || len(at.Addresses) == 0 || !areAddresses(at.Addresses) {
			err = errors.New("must be the name of the primary and addresses of sentinels, such as mymaster,sentinel-0:26379,sentinel-1:26379")
		}
	case "CLUSTER":
		if at.Addresses = strings.Split(r.url, ","); !areAddresses(at.Addresses) {
			err = errors.New("must be addresses of servers of the cluster, such as redis-0:6379,redis-1:6379")
		}
	default:
		return at, fmt.Errorf("REDIS_TYPE: %.20q must be SINGLE, SENTINEL or CLUSTER", r.kind)
	}
	if err != nil {
		return at, fmt.Errorf("REDIS_URL: %w", err)
	}
	if r.auth != "" {
		at.Username, at.Password = parseLogin(r.auth)
	}
	if at.Master != "" {
		at.SentinelUsername, at.SentinelPassword = parseLogin(r.sentinelAuth)
	}
	if at.TLS.Enabled = at.TLS.Enabled || r.tls; at.TLS.Enabled {
		at.TLS.CA, at.TLS.Cert, at.TLS.Key = r.ca, r.cert, r.key
	}
	if (at.TLS.Cert == "") != (at.TLS.Key == "") {
		return at, errors.New("REDIS_TLS_CLIENT_CERT and REDIS_TLS_CLIENT_KEY: one needs the other")
	}
	return at, nil
}

func areAddresses(all []string) bool {
	for _, a := range all {
		if !yamlcfg.IsAddress(a) {
			return false
		}
	}
	return true
}

// parseLogin reads a password, or user:password.
func parseLogin(text string) (user, password string) {
	if user, password, ok := strings.Cut(text, ":"); ok {
		return user, password
	}
	return "", text
}

// parseServer reads host:port, or redis://[[user]:password@]host[:port][/database]. rediss is with TLS.
func parseServer(text string, at *config.Valkey) error {
	bad := errors.New("must be host:port, or a URL such as redis://:password@host:6379/0, or rediss:// with TLS")
	if !strings.Contains(text, "://") {
		if !yamlcfg.IsAddress(text) {
			return bad
		}
		at.Addresses = []string{text}
		return nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "redis" && u.Scheme != "rediss" || u.Hostname() == "" {
		return bad
	}
	at.Addresses = []string{net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "6379"))}
	if !areAddresses(at.Addresses) {
		return bad
	}
	at.Username = u.User.Username()
	at.Password, _ = u.User.Password()
	at.TLS.Enabled = u.Scheme == "rediss"
	if db := strings.Trim(u.Path, "/"); db != "" {
		n, err := strconv.ParseUint(db, 10, 10)
		if err != nil {
			return bad
		}
		at.Database = int(n)
	}
	return nil
}

// useServer makes a server the store. It begins anew where the server has lost all: limits are in files.
// It counts no usage, which the services in whose place it is do not have.
func (s *Settings) useServer(at config.Valkey) {
	at.Create, at.OnLoss = true, config.LossRecreate
	s.defaults = append(s.defaults, func(c *config.Config) {
		of := at
		of.Table, of.Password = c.Store.Valkey.Table, cmp.Or(at.Password, c.Store.Valkey.Password)
		c.Store.Type, c.Store.Valkey = config.StoreValkey, of
	})
}

// hasOwnStore reports whether variables of ours name a store.
func hasOwnStore(lookup Lookup) bool {
	table, _ := lookup("RATELIMIT_TABLE")
	data, _ := lookup("RATELIMIT_DATA")
	return table != "" || data != ""
}
