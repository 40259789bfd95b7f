package environment

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/url"
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
	// Other is the setting that names a store of the other service; "" = there is none. A Redis server is used where
	// the store of the configuration is valkey.
	Other string
	// Storeless says that no variable names a store.
	Storeless bool

	defaults []func(*config.Config)
	runtime  runtime
	xds      bool
	debug    struct{ host, port string }
	statsd   statsd
	redis    redisServer
	tls      bool // without it the files of the listener have no effect
}

// statsd is the parts of the settings of a StatsD server.
type statsd struct {
	on, off, dog bool
	host, port   string
	interval     time.Duration // 0 = the default
	tags         map[string]string
}

// set puts the server into a configuration, if it is on.
func (s *statsd) set(c *config.Config) {
	if !s.on && !s.dog || s.off {
		return
	}
	of := &c.Server.Statsd
	of.Address, of.Tags, of.Protocol = joinHost(cmp.Or(s.host, "localhost"), cmp.Or(s.port, "8125")), s.tags, config.StatsdTCP
	if of.Interval = cmp.Or(s.interval, of.Interval); s.dog {
		of.Protocol = config.DogStatsd
	}
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
	s.defaults = append(s.defaults, s.statsd.set)
	if s.debug.port != "" {
		s.defaults = append(s.defaults, func(c *config.Config) {
			c.Server.Debug.Address = joinHost(cmp.Or(s.debug.host, "0.0.0.0"), s.debug.port)
		})
	}
	var c config.Config
	s.Defaults(&c)
	if of := &c.Server.GRPC.TLS; s.tls && (of.Cert == "" || of.Key == "") {
		mistakes = append(mistakes, errors.New("GRPC_SERVER_USE_TLS: needs GRPC_SERVER_TLS_CERT and GRPC_SERVER_TLS_KEY"))
	}
	if of := &c.Server.GRPC.TLS; of.ClientName != "" && of.ClientCA == "" {
		mistakes = append(mistakes, errors.New("GRPC_CLIENT_TLS_SAN: needs GRPC_CLIENT_TLS_CACERT, without which no client must show a certificate"))
	}
	if err := s.redis.use(s, lookup); err != nil {
		mistakes = append(mistakes, err)
	}
	for _, name := range others() {
		if value, _ := lookup(name); value != "" {
			s.Other = cmp.Or(s.Other, name)
		}
	}
	s.Storeless = s.Other == "" && !hasOwnStore(lookup)
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

// parseTags reads the tags of StatsD.
func parseTags(text string) (map[string]string, error) {
	tags, err := parsePairs(":")(text)
	for name, value := range tags {
		err = errors.Join(err, config.CheckTag(name, value))
	}
	return tags, err
}

// parseThousandths reads a part above 0, at most 1, in thousandths.
func parseThousandths(text string) (int64, error) {
	share, err := strconv.ParseFloat(text, 64)
	if err != nil || !(share >= 0.001 && share <= 1) {
		return 0, fmt.Errorf("%q must be 0.001 to 1, such as 0.8", text)
	}
	return int64(math.Round(share * 1000)), nil
}

// parseCollector reads the URL of a collector, with rpc: or grpc: in place of http: too.
func parseCollector(value string) (string, error) {
	if value == "" {
		return "", nil
	}
	for _, scheme := range []string{"rpc:", "grpc:"} {
		if rest, ok := strings.CutPrefix(value, scheme); ok {
			value = "http:" + rest
		}
	}
	u, err := url.Parse(value)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return "", fmt.Errorf("%.100q must be a URL, such as http://collector:4317", value)
	}
	return value, nil
}

// parseShare reads a part, 0 to 1.
func parseShare(value string) (string, error) {
	share, err := strconv.ParseFloat(value, 64)
	if err != nil || !(share >= 0 && share <= 1) {
		return "", fmt.Errorf("%q must be 0 to 1, such as 0.01", value)
	}
	return value, nil
}

// parseProtocol reads the protocol of a collector.
func parseProtocol(value string) (string, error) {
	switch value {
	case "http", "http/protobuf":
		return "http/protobuf", nil
	case "grpc":
		return "grpc", nil
	default:
		return "", fmt.Errorf("%q must be http or grpc", value)
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

// joinHost returns an address of a host, which may have brackets, and a port.
func joinHost(host, port string) string { return net.JoinHostPort(strings.Trim(host, "[]"), port) }

// withHost and withPort change a part of an address.
func withHost(address *string, host string) {
	_, port, _ := net.SplitHostPort(*address) // it is a default
	*address = net.JoinHostPort(host, port)
}

func withPort(address *string, port string) {
	host, _, _ := net.SplitHostPort(*address)
	*address = net.JoinHostPort(host, port)
}
