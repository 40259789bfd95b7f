// Dynamolocal starts a DynamoDB Local and runs a command beside it, which finds it in the
// environment as tests expect it. It ends with the command, and with its exit code:
//
//	go run ./test/kit/dynamolocal go test ./pkg/dynamo
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code, err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "dynamolocal:", err)
		code = 1
	}
	os.Exit(code) //nolint:forbidigo // main is where the program ends
}

// patience is how long the command has to end once it is told to.
const patience = 10 * time.Second

// run runs the command until it ends, or ctx is done, and returns its exit code.
func run(ctx context.Context, command []string) (int, error) {
	if len(command) == 0 {
		return 0, errors.New("name the command to run")
	}
	server, err := dynamotest.Launch(ctx)
	if err != nil {
		return 0, err
	}
	defer server.Stop()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = append(os.Environ(), dynamotest.URLVariable+"="+server.URL)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = patience
	err = cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.Exited() {
		return exit.ExitCode(), nil
	}
	return 0, err
}
