package environment

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/pkg/rls"
)

// Settings are those of an environment.
type Settings struct {
	// Rules is the directory with the files of rules; "" = they come from a control plane.
	Rules string
	// Honoured, Accepted and Ignored are the names of variables that are set, sorted.
	Honoured, Accepted, Ignored []string

	defaults []func(*config.Config)
	runtime  runtime
	xds      bool
	tls      bool // without it the files of the listener have no effect
}

// runtime is the parts of the directory with rules.
type runtime struct{ root, subdirectory, app string }

// Defaults changes the defaults of a configuration.
func (s *Settings) Defaults(c *config.Config) {
	for _, set := range s.defaults {
		set(c)
	}
}

// Lookup returns the value of a variable, and whether it is set, as os.LookupEnv.
type Lookup func(name string) (string, bool)

// Start reports whether the environment is one that envoyproxy/ratelimit is started with. With a configuration file
// only variables that say where rules are count.
func Start(lookup Lookup, file bool) bool {
	names := []string{"RUNTIME_ROOT", "RUNTIME_SUBDIRECTORY", "CONFIG_TYPE", "CONFIG_GRPC_XDS_SERVER_URL"}
	if !file {
		names = slices.Concat(names, []string{
			"RUNTIME_APPDIRECTORY", "RUNTIME_WATCH_ROOT", "RUNTIME_IGNOREDOTFILES", "CONFIG_GRPC_XDS_NODE_ID", "REDIS_URL", "REDIS_SOCKET_TYPE", "BACKEND_TYPE",
			"MEMCACHE_HOST_PORT", "USE_STATSD", "USE_PROMETHEUS", "GRPC_HOST", "GRPC_PORT", "GRPC_SERVER_USE_TLS", "FORCE_START_WITHOUT_INITIAL_CONFIG",
			"LIMIT_RESPONSE_HEADERS_ENABLED",
		})
	}
	return slices.ContainsFunc(names, func(name string) bool {
		value, _ := lookup(name)
		return value != ""
	})
}

// Read reads an environment. Its error has all mistakes.
func Read(lookup Lookup) (*Settings, error) {
	s := &Settings{runtime: runtime{"/srv/runtime_data/current", "", "config"}}
	s.defaults = append(s.defaults, theirs)
	var mistakes []error
	for _, v := range variables() {
		value, set := lookup(v.name)
		switch {
		case !set || value == "":
			continue
		case v.ignored:
			s.Ignored = append(s.Ignored, v.name)
			continue
		case v.read == nil:
			s.Accepted = append(s.Accepted, v.name)
			continue
		}
		s.Honoured = append(s.Honoured, v.name)
		if err := v.read(s, value); err != nil {
			mistakes = append(mistakes, fmt.Errorf("%s: %w", v.name, err))
		}
	}
	if !s.tls {
		s.defaults = append(s.defaults, func(c *config.Config) { c.Server.GRPC.TLS = config.TLS{} })
	}
	var c config.Config
	s.Defaults(&c)
	if of := &c.Server.GRPC.TLS; s.tls && (of.Cert == "" || of.Key == "") {
		mistakes = append(mistakes, errors.New("GRPC_SERVER_USE_TLS: needs GRPC_SERVER_TLS_CERT and GRPC_SERVER_TLS_KEY"))
	}
	for _, names := range [][]string{s.Honoured, s.Accepted, s.Ignored} {
		slices.Sort(names)
	}
	if !s.xds {
		s.Rules = filepath.Join(s.runtime.root, s.runtime.subdirectory, s.runtime.app)
	}
	return s, errors.Join(mistakes...)
}

// Names returns the names of all variables, sorted, by their effect.
func Names() (honoured, accepted, ignored []string) {
	for _, v := range variables() {
		switch {
		case v.ignored:
			ignored = append(ignored, v.name)
		case v.read == nil:
			accepted = append(accepted, v.name)
		default:
			honoured = append(honoured, v.name)
		}
	}
	slices.Sort(honoured)
	slices.Sort(accepted)
	slices.Sort(ignored)
	return honoured, accepted, ignored
}

// theirs are the defaults of that service.
func theirs(c *config.Config) {
	c.Server.GRPC.Address, c.Server.GRPC.MaxConnectionAge = "0.0.0.0:8081", 24*time.Hour
	c.Server.HTTP.Address, c.Server.HTTP.Charges = "0.0.0.0:8080", true
	c.Envoyproxy.Metadata = rls.NoMetadata
	c.XDS.Node = "default"
}

// variable is one variable of that service.
type variable struct {
	name    string
	read    func(s *Settings, value string) error // nil = it is accepted
	ignored bool                                  // it has no effect, and that is said
}

// set returns a variable whose value changes a configuration.
func set[T any](name string, parse func(string) (T, error), to func(c *config.Config, value T)) variable {
	return variable{name: name, read: func(s *Settings, text string) error {
		value, err := parse(text)
		if err == nil {
			s.defaults = append(s.defaults, func(c *config.Config) { to(c, value) })
		}
		return err
	}}
}

// own returns a variable that changes the settings themselves.
func own[T any](name string, parse func(string) (T, error), to func(s *Settings, value T)) variable {
	return variable{name: name, read: func(s *Settings, text string) error {
		value, err := parse(text)
		if err == nil {
			to(s, value)
		}
		return err
	}}
}

func parseText(value string) (string, error) { return value, nil }

func parseBool(value string) (bool, error) {
	b, err := strconv.ParseBool(value)
	if err != nil {
		return false, fmt.Errorf("%q must be true or false", value)
	}
	return b, nil
}

func parsePort(value string) (string, error) {
	if _, err := strconv.ParseUint(value, 10, 16); err != nil {
		return "", fmt.Errorf("%q must be a port, 0 to 65535; 0 is a free one", value)
	}
	return value, nil
}

func parseHost(value string) (string, error) {
	return strings.Trim(value, "[]"), nil
}

func parseDuration(value string) (time.Duration, error) {
	d, err := time.ParseDuration(value)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q must be a duration, such as 30s or 24h", value)
	}
	return d, nil
}

func parsePath(value string) (string, error) { return value, config.CheckPath(value) }

// parseAddress reads host:port; without a host all interfaces.
func parseAddress(value string) (string, error) {
	host, port, err := net.SplitHostPort(value)
	if err == nil {
		_, err = parsePort(port)
	}
	if err != nil {
		return "", fmt.Errorf("%q must be an address, such as :9090", value)
	}
	return net.JoinHostPort(cmp.Or(host, "0.0.0.0"), port), nil
}

func parseHeader(value string) (string, error) { return value, config.CheckHeaderName(value) }

func parseSize(value string) (int, error) {
	n, err := strconv.ParseUint(value, 10, 31)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("%q must be a number of bytes", value)
	}
	return int(n), nil
}

// parsePairs reads k=v,k=v, or with another mark between a key and its value.
func parsePairs(mark string) func(string) (map[string]string, error) {
	return func(text string) (map[string]string, error) {
		all := make(map[string]string)
		for pair := range strings.SplitSeq(text, ",") {
			key, value, ok := strings.Cut(pair, mark)
			if key = strings.TrimSpace(key); !ok || key == "" {
				return nil, fmt.Errorf("must be pairs such as key%svalue,other%svalue", mark, mark) // it may be a secret
			}
			all[key] = strings.TrimSpace(value)
		}
		return all, nil
	}
}

// parseLevel reads a level of the log.
func parseLevel(value string) (slog.Level, error) {
	switch strings.ToLower(value) {
	case "trace", "debug":
		return slog.LevelDebug, nil
	case "info":
		return slog.LevelInfo, nil
	case "warn", "warning":
		return slog.LevelWarn, nil
	case "error", "fatal", "panic":
		return slog.LevelError, nil
	default:
		return 0, fmt.Errorf("%q must be trace, debug, info, warn, error, fatal or panic", value)
	}
}

// parseFormat reads the form of the log.
func parseFormat(value string) (config.LogFormat, error) {
	switch strings.ToLower(value) {
	case "text":
		return config.LogText, nil
	case "json":
		return config.LogJSON, nil
	default:
		return "", fmt.Errorf("%q must be text or json", value)
	}
}

// withHost and withPort change a part of an address.
func withHost(address *string, host string) {
	_, port, _ := net.SplitHostPort(*address) // it is a default
	*address = net.JoinHostPort(host, port)
}

func withPort(address *string, port string) {
	host, _, _ := net.SplitHostPort(*address)
	*address = net.JoinHostPort(host, port)
}
