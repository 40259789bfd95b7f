// Command ratelimit is a rate limit service for Envoy and every gateway that
// speaks its Rate Limit Service protocol. See `ratelimit help`.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/ratelimit/ratelimit/internal/awscmd"
	"github.com/ratelimit/ratelimit/internal/command"
)

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
	os.Exit(run(ctx, awscmd.Arguments(os.Args[1:], os.Getenv), os.Stdout, os.Stderr))
}
