package server

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ratelimit/ratelimit/internal/environment"
	"github.com/ratelimit/ratelimit/pkg/rls"
)

// LimitadorName is the name of the command that takes the arguments of limitador-server. The program is that command
// too where it is started by this name.
const LimitadorName = "limitador-server"

// limitadorAPI returns the HTTP API of limitador for the service.
func limitadorAPI(s *Service) *rls.LimitadorAPI {
	return &rls.LimitadorAPI{
		Ask: s.RLS.Ask, Metered: s.RLS.Metered, Used: s.counters.Used, Decider: s.limiter, Now: s.Clocks.Call,
		InForce: func() rls.LimitadorInForce {
			cfg := s.InForce.Load()
			return rls.LimitadorInForce{On: cfg.Limitador, Counters: s.cfg.Server.HTTP.Counters, Rules: cfg.Rules, Snapshot: cfg.Snapshot}
		},
	}
}

// NewLimitador returns the command limitador-server.
func NewLimitador() *cobra.Command {
	var f serveFlags
	var l environment.Limitador
	var validate bool
	var accepted struct {
		names, reflection bool
		labels, fraction  string
		ttl               string
	}
	cmd := &cobra.Command{
		Use:   LimitadorName + " LIMITS_FILE [memory | disk PATH | redis URL | redis_cached URL]",
		Short: "Start the service as Kuadrant's limitador is started",
		Long: `limitador-server takes the arguments and variables of Kuadrant's rate limit service,
and its file of limits. The program is this command too where its name is
limitador-server, as in the image.

Buckets are in memory, with disk in a directory, or with redis on a Redis or Valkey
server that replicas share; RATELIMIT_TABLE names a DynamoDB table in its place.
docs/how-to/kuadrant.md has the differences.`,
		Example: `  ratelimit limitador-server --http-port 8080 --rls-port 8081 limits.yaml memory
  ratelimit limitador-server --validate limits.yaml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			hangups := make(chan os.Signal, 1)
			signal.Notify(hangups, syscall.SIGHUP) // first: it never ends the service
			defer signal.Stop(hangups)
			f.hangups = hangups
			if len(args) > 0 {
				l.File, l.Storage = args[0], args[1:]
			}
			settings, err := l.Settings(os.LookupEnv)
			if err != nil {
				return err
			}
			f.SetEnvironment(settings)
			cfg, err := f.Load()
			if err != nil || validate {
				return err
			}
			f.variables = settings
			f.keys = listenKeys{grpc: "--rls-ip and --rls-port, or ENVOY_RLS_HOST and ENVOY_RLS_PORT", http: "--http-ip and --http-port, or HTTP_API_HOST and HTTP_API_PORT"}
			return f.serve(cmd.Context(), cfg, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	for _, name := range []string{"optimize", "cache", "batch-size", "flush-period", "max-cached", "response-timeout", "ttl", "ratio"} {
		flags.String(name, "", "no effect: of limitador's storages")
		_ = flags.MarkHidden(name) // it exists
	}
	flags.StringVarP(&l.RLSHost, "rls-ip", "b", "", "where to answer gRPC (default 0.0.0.0)")
	flags.StringVarP(&l.RLSPort, "rls-port", "p", "", "its port (default 8081)")
	flags.StringVarP(&l.HTTPHost, "http-ip", "B", "", "where to answer HTTP (default 0.0.0.0)")
	flags.StringVarP(&l.HTTPort, "http-port", "P", "", "its port (default 8080)")
	flags.StringVarP(&l.Headers, "rate-limit-headers", "H", "", "NONE or DRAFT_VERSION_03, x-ratelimit-limit and so on (default NONE)")
	flags.StringVar(&l.Traces, "tracing-endpoint", "", "collector of traces, such as http://collector:4317")
	flags.CountVarP(&l.Verbose, "verbose", "v", "more lines in the log")
	flags.BoolVar(&validate, "validate", false, "check the file, and end")
	flags.BoolVarP(&accepted.names, "limit-name-in-labels", "l", false, "accepted: metrics of denials always have the names of limits")
	flags.BoolVarP(&accepted.reflection, "grpc-reflection-service", "g", false, "accepted: there always is server reflection")
	flags.StringVar(&accepted.labels, "metric-labels-default", "", "no effect: text of a request is in no label")
	flags.StringVar(&accepted.fraction, "max-reservation-fraction", "", "no effect: a reservation holds all that it asks for")
	flags.StringVar(&accepted.ttl, "max-reservation-ttl", "", "no effect: a reservation can be committed for at least 10 minutes")
	return cmd
}
