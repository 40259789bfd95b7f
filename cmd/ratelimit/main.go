// Command ratelimit is a rate limit service for Envoy and every gateway that
// speaks its Rate Limit Service protocol. See `ratelimit help`.
package main

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/ratelimit/ratelimit/internal/awscmd"
	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/internal/server"
)

// arguments returns the arguments of the program. Where it is called limitador-server, it is that command.
func arguments() []string {
	args := awscmd.Arguments(os.Args[1:], os.Getenv)
	if filepath.Base(os.Args[0]) == server.LimitadorName {
		args = append([]string{server.LimitadorName}, args...)
	}
	return args
}

func main() {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		sig := <-signals
		signal.Stop(signals) // the next one ends the program at once
		if sig == os.Interrupt {
			cancel(command.ErrInterrupted)
		} else {
			cancel(command.ErrTerminated)
		}
	}()
	os.Exit(run(ctx, arguments(), os.Stdout, os.Stderr))
}
