package envoytest

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// ProgramVariable is the environment variable with the service that the tests start. It is
// built where none is named. make names the one that it builds for all tests.
const ProgramVariable = "RATELIMIT_PROGRAM"

// upstreamVariable is that of the upstream.
const upstreamVariable = "RATELIMIT_UPSTREAM"

// Main builds the service, without the race detector, into a directory that every user may
// read, and runs the tests of a package. It returns the exit code, for TestMain. m is a
// *testing.M, or a value that prepares more and runs one.
func Main(m interface{ Run() int }) int {
	return mainWith(m, func(ctx context.Context, dir string) error { return buildService(ctx, dir) })
}

// MainOfGateways is Main for tests that send requests through a gateway: it builds all programs,
// and the service with the race detector when the tests have it. With -short, which leaves such
// tests out, it builds nothing.
func MainOfGateways(m interface{ Run() int }) int {
	flag.Parse()
	if testing.Short() {
		return m.Run()
	}
	return mainWith(m, BuildPrograms)
}

// buildPatience is how long the programs may take to build: no -timeout of go test ends what
// comes before the tests.
const buildPatience = 10 * time.Minute

func mainWith(m interface{ Run() int }, build func(ctx context.Context, dir string) error) int {
	dir, err := os.MkdirTemp("", "ratelimit-test-")
	if err == nil {
		defer func() { _ = os.RemoveAll(dir) }()
		err = os.Chmod(dir, 0o755) // for a service that runs as another user
	}
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), buildPatience)
		err = build(ctx, dir)
		cancel()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// BuildPrograms builds the programs into dir and has [StartService] and
// [StartUpstream] start them. The service has the race detector when the tests have
// it. What RATELIMIT_PROGRAM and RATELIMIT_UPSTREAM name is not built.
func BuildPrograms(ctx context.Context, dir string) error {
	var flags []string
	if raceDetector {
		flags = append(flags, "-race")
	}
	if err := buildService(ctx, dir, flags...); err != nil {
		return err
	}
	return build(ctx, upstreamVariable, filepath.Join(dir, "upstream"), "./examples/upstream")
}

// buildService builds the service into a directory.
func buildService(ctx context.Context, dir string, flags ...string) error {
	return build(ctx, ProgramVariable, filepath.Join(dir, "ratelimit"), "./cmd/ratelimit", flags...)
}

// build builds a package of the repository and puts the program's path in a variable, unless
// that names one. The program's version is "dev", as pages have it, with any flags in the
// environment.
func build(ctx context.Context, variable, program, pkg string, flags ...string) error {
	if os.Getenv(variable) != "" {
		return nil
	}
	root, err := Root()
	if err != nil {
		return err
	}
	args := append([]string{"build", "-buildvcs=false", "-o", program}, flags...)
	build := exec.CommandContext(ctx, "go", append(args, pkg)...)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", pkg, err, out)
	}
	return os.Setenv(variable, program)
}
