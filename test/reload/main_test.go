package reload_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/ratelimit/ratelimit/test/envoytest"
)

// programVariable names the program to test; it is built where it is not set.
const programVariable = "RATELIMIT_PROGRAM"

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "ratelimit-reload-")
	if err == nil {
		defer func() { _ = os.RemoveAll(dir) }()
		err = build(context.Background(), filepath.Join(dir, "ratelimit"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

func build(ctx context.Context, program string) error {
	if os.Getenv(programVariable) != "" {
		return nil
	}
	root, err := envoytest.Root()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-o", program, "./cmd/ratelimit")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build ./cmd/ratelimit: %w\n%s", err, out)
	}
	return os.Setenv(programVariable, program)
}
