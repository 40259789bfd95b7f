package clockjump_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/test/envoytest"
	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
)

// buildPatience is how long the program may take to build, beside other builds.
const buildPatience = 20 * time.Minute

// TestMain builds the program with the clock of these tests. With -short, which leaves
// them out, it builds nothing.
func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	flag.Parse()
	if testing.Short() {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "ratelimit-test-")
	if err == nil {
		defer func() { _ = os.RemoveAll(dir) }()
		err = build(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return dynamotest.Main(m)
}

// build builds the program into a directory, and has envoytest start it.
func build(dir string) error {
	root, err := envoytest.Root()
	if err != nil {
		return err
	}
	replaced, err := overlay(dir)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), buildPatience)
	defer cancel()
	program, began := filepath.Join(dir, "ratelimit"), time.Now()
	build := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-pgo=off", "-overlay", replaced, "-o", program, "./cmd/ratelimit")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the program with a clock of its own: %w\n%s", err, out)
	}
	fmt.Fprintf(os.Stderr, "the program was built in %v\n", time.Since(began).Round(time.Second))
	return os.Setenv(envoytest.ProgramVariable, program)
}

// The clock is added where time.Now has read both clocks.
const (
	reading  = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	addition = "\tsec += jumpedBy()\n"
)

// overlay writes the file of go build -overlay, and returns its path.
func overlay(dir string) (path string, err error) {
	out, err := exec.CommandContext(context.Background(), "go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOROOT: %w", err)
	}
	std := filepath.Join(strings.TrimSpace(string(out)), "src", "time")
	text, err := os.ReadFile(filepath.Join(std, "time.go"))
	if err != nil {
		return "", err
	}
	before, after, found := strings.Cut(string(text), reading)
	if !found || strings.Contains(after, reading) || strings.Count(string(text), "runtimeNow()\n") != 1 {
		return "", fmt.Errorf("time.Now of %s has changed: it does not read the clock once, by %q", runtime.Version(), reading)
	}
	added, err := filepath.Abs(filepath.Join("testdata", "clockjump.go"))
	if err != nil {
		return "", err
	}
	changed, path := filepath.Join(dir, "time.go"), filepath.Join(dir, "overlay.json")
	list, err := json.Marshal(map[string]any{"Replace": map[string]string{
		filepath.Join(std, "time.go"):      changed,
		filepath.Join(std, "clockjump.go"): added,
	}})
	return path, errors.Join(err, os.WriteFile(changed, []byte(before+reading+addition+after), 0o600), os.WriteFile(path, list, 0o600))
}
