package envoygateway_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/ratelimit/ratelimit/test/envoytest"
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

// run builds the programs that the tests start, and runs them.
func run(m *testing.M) int {
	if testing.Short() {
		return m.Run() // the test of Envoy leaves itself out
	}
	dir, err := os.MkdirTemp("", "ratelimit-envoygateway-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := envoytest.BuildPrograms(context.Background(), dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}
