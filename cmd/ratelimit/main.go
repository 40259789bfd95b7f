// Command ratelimit is a rate limit service for Envoy and every gateway that
// speaks its Rate Limit Service protocol. See `ratelimit help`.
package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// errInterrupted and errTerminated say which signal ended the program's context.
var (
	errInterrupted = errors.New("interrupted")
	errTerminated  = errors.New("terminated")
)

func main() {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		sig := <-signals
		signal.Stop(signals) // the next one ends the program at once
		if sig == os.Interrupt {
			cancel(errInterrupted)
		} else {
			cancel(errTerminated)
		}
	}()
	os.Exit(run(ctx, arguments(os.Args[1:], os.Getenv), os.Stdout, os.Stderr))
}
