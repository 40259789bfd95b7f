package main

import (
	"fmt"
	"os"
	"testing"

	"github.com/ratelimit/ratelimit/internal/server"
	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
)

func TestMain(m *testing.M) { os.Exit(inOwnRunDir(m)) }

// inOwnRunDir keeps the sockets of services apart from those of the machine.
func inOwnRunDir(m *testing.M) int {
	dir, err := os.MkdirTemp("", "ratelimit-run-")
	if err == nil {
		defer func() { _ = os.RemoveAll(dir) }()
		err = os.Setenv(server.RunDirVariable, dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return dynamotest.Main(m)
}
