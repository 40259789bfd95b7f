package envoytest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// The environment variables with the programs that the tests start.
const (
	programVariable  = "RATELIMIT_PROGRAM"
	upstreamVariable = "RATELIMIT_UPSTREAM"
)

// BuildPrograms builds the programs into dir and has [StartService] and
// [StartUpstream] start them; the service with the race detector when the tests have
// it, and not when RATELIMIT_PROGRAM names another one to test. It is for TestMain.
func BuildPrograms(ctx context.Context, dir string) error {
	if os.Getenv(programVariable) == "" {
		var flags []string
		if raceDetector {
			flags = append(flags, "-race")
		}
		if err := build(ctx, programVariable, filepath.Join(dir, "ratelimit"), "./cmd/ratelimit", flags...); err != nil {
			return err
		}
	}
	return build(ctx, upstreamVariable, filepath.Join(dir, "upstream"), "./examples/upstream")
}

// build builds a package of the repository and puts the program's path in a
// variable.
func build(ctx context.Context, variable, program, pkg string, flags ...string) error {
	root, err := Root()
	if err != nil {
		return err
	}
	args := append([]string{"build", "-o", program}, flags...)
	build := exec.CommandContext(ctx, "go", append(args, pkg)...)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", pkg, err, out)
	}
	return os.Setenv(variable, program)
}
