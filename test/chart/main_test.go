package chart_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// programVariable is the environment variable with the path of the service's program.
const programVariable = "RATELIMIT_CHART_PROGRAM"

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(runTests(m))
}

// runTests builds the program that the tests start, and runs them.
func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "ratelimit-chart-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	program := filepath.Join(dir, "ratelimit")
	build := exec.CommandContext(context.Background(), "go", "build", "-o", program, "./cmd/ratelimit")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%v\n%s", err, out)
		return 1
	}
	if err := os.Setenv(programVariable, program); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}
