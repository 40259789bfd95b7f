package environment

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ratelimit/ratelimit/config"
)

// Limitador is the command line of limitador-server. Empty members are those of its variables.
type Limitador struct {
	File              string   // LIMITS_FILE
	Storage           []string // memory; disk PATH; redis URL; redis_cached URL
	RLSHost, RLSPort  string   // ENVOY_RLS_HOST, ENVOY_RLS_PORT; 0.0.0.0:8081
	HTTPHost, HTTPort string   // HTTP_API_HOST, HTTP_API_PORT; 0.0.0.0:8080
	Headers           string   // RATE_LIMIT_HEADERS; NONE or DRAFT_VERSION_03
	Traces            string   // TRACING_ENDPOINT; "" = those of OpenTelemetry
	Verbose           int      // 0 errors; 1 warnings, 2 information, 3 all
}

// Settings returns the settings of the command line and the environment of limitador. Its error has all mistakes.
func (l *Limitador) Settings(lookup Lookup) (*Settings, error) {
	s := &Settings{defaults: []func(*config.Config){func(c *config.Config) { c.Server.HTTP.Charges, c.Server.HTTP.Counters = true, true }}}
	var mistakes []error
	read := func(flag, name, fallback string) string {
		value, _ := lookup(name)
		if flag == "" && value != "" {
			s.Honoured = append(s.Honoured, name)
		}
		return cmp.Or(flag, value, fallback)
	}
	address := func(host, port string) string {
		if _, err := parsePort(port); err != nil {
			mistakes = append(mistakes, fmt.Errorf("the port %w", err))
		}
		return joinHost(host, port)
	}
	s.Rules = read(l.File, "LIMITS_FILE", "")
	if s.Rules == "" {
		mistakes = append(mistakes, errors.New("the file of limits is missing: name it as the first argument, or by LIMITS_FILE"))
	}
	rls := address(read(l.RLSHost, "ENVOY_RLS_HOST", "0.0.0.0"), read(l.RLSPort, "ENVOY_RLS_PORT", "8081"))
	http := address(read(l.HTTPHost, "HTTP_API_HOST", "0.0.0.0"), read(l.HTTPort, "HTTP_API_PORT", "8080"))
	traces, err := parseCollector(read(l.Traces, "TRACING_ENDPOINT", ""))
	if err != nil {
		mistakes = append(mistakes, fmt.Errorf("--tracing-endpoint: %w", err))
	}
	s.defaults = append(s.defaults, func(c *config.Config) {
		c.Server.GRPC.Address, c.Server.HTTP.Address, c.Tracing.Endpoint = rls, http, traces
	})
	switch headers := read(l.Headers, "RATE_LIMIT_HEADERS", "NONE"); headers {
	case "NONE":
		s.defaults = append(s.defaults, func(c *config.Config) { c.Headers = config.Headers{} })
	case "DRAFT_VERSION_03":
		s.defaults = append(s.defaults, func(c *config.Config) { c.Headers = config.Headers{XRateLimit: true} })
	default:
		mistakes = append(mistakes, fmt.Errorf("--rate-limit-headers is %.50q; it must be NONE or DRAFT_VERSION_03", headers))
	}
	mistakes = append(mistakes, s.limitadorLog(l, lookup), s.limitadorStore(l.Storage, lookup))
	for _, name := range []string{"LIMIT_NAME_IN_PROMETHEUS_LABELS", "REDIS_LOCAL_CACHE_ENABLED", "REDIS_LOCAL_CACHE_FLUSHING_PERIOD_MS", "REDIS_LOCAL_CACHE_BATCH_SIZE", "DISK_OPTIMIZE"} {
		if value, _ := lookup(name); value != "" {
			s.Accepted = append(s.Accepted, name)
		}
	}
	slices.Sort(s.Honoured)
	return s, errors.Join(mistakes...)
}

// limitadorLog sets the level of the log: that of RUST_LOG, or of -v.
func (s *Settings) limitadorLog(l *Limitador, lookup Lookup) error {
	name := [...]string{"warn", "warn", "info", "debug"}[min(l.Verbose, 3)]
	if value, _ := lookup("RUST_LOG"); value != "" && l.Verbose == 0 {
		s.Honoured = append(s.Honoured, "RUST_LOG")
		name = rustLevel(value)
	}
	level, err := parseLevel(name)
	if err != nil {
		return fmt.Errorf("RUST_LOG: %w", err)
	}
	s.defaults = append(s.defaults, func(c *config.Config) { c.Log.Level = level })
	return nil
}

// rustLevel returns the level in a RUST_LOG such as "info", "limitador=debug,info" or "limitador_server=trace": that
// of all modules, otherwise that of the first one. A module of limitador without a level logs all.
func rustLevel(value string) string {
	first := ""
	for part := range strings.SplitSeq(value, ",") {
		module, level, of := strings.Cut(strings.TrimSpace(part), "=")
		if !of && strings.HasPrefix(module, "limitador") {
			level, of = "trace", true
		}
		if !of {
			first = module
			break
		}
		first = cmp.Or(first, level)
	}
	if first = strings.TrimSpace(first); strings.EqualFold(first, "off") {
		return "error"
	}
	return first
}

// limitadorStore sets the store: that of our variables, a directory for disk, or the memory.
func (s *Settings) limitadorStore(storage []string, lookup Lookup) error {
	var mistakes []error
	for _, v := range ownStore() {
		if value, _ := lookup(v.name); value != "" {
			s.Honoured = append(s.Honoured, v.name)
			mistakes = append(mistakes, v.read(s, value))
		}
	}
	kind, of := "memory", ""
	if len(storage) > 0 {
		kind = storage[0]
	}
	if len(storage) > 1 {
		of = storage[1]
	}
	switch kind {
	case "memory":
	case "disk":
		path, _ := lookup("DISK_PATH")
		if of == "" && path != "" {
			s.Honoured = append(s.Honoured, "DISK_PATH")
		}
		if path = cmp.Or(of, path); path == "" {
			return errors.Join(append(mistakes, errors.New("disk needs a PATH"))...)
		}
		s.defaults = append(s.defaults, func(c *config.Config) {
			if c.Store.Type == config.StoreEmbedded {
				c.Store.Embedded.Data = cmp.Or(c.Store.Embedded.Data, path)
			}
		})
	case "redis", "redis_cached":
		s.Other = kind
		mistakes = append(mistakes, s.limitadorServer(of, lookup))
	case "distributed":
		s.Other = kind
	default:
		mistakes = append(mistakes, fmt.Errorf("%.50q is no storage; it must be memory, disk PATH, redis URL or redis_cached URL", kind))
	}
	return errors.Join(mistakes...)
}

// limitadorServer makes the server of a URL, or of REDIS_URL, the store.
func (s *Settings) limitadorServer(of string, lookup Lookup) error {
	if hasOwnStore(lookup) {
		return nil
	}
	if value, _ := lookup("REDIS_URL"); of == "" && value != "" {
		of = value
		s.Honoured = append(s.Honoured, "REDIS_URL")
	}
	var at config.Valkey
	if err := parseServer(of, &at); err != nil {
		return fmt.Errorf("the URL of %s %w", s.Other, err)
	}
	s.useServer(at)
	return nil
}
