package server

import (
	"fmt"
	"os"
	"testing"
)

// TestMain keeps the sockets of services apart from those of the machine.
func TestMain(m *testing.M) { os.Exit(inOwnRunDir(m)) }

func inOwnRunDir(m *testing.M) int {
	dir, err := os.MkdirTemp("", "ratelimit-run-")
	if err == nil {
		defer func() { _ = os.RemoveAll(dir) }()
		err = os.Setenv(RunDirVariable, dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}
