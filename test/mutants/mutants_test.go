//go:build mutants

package mutants_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

const dynamo = "../../pkg/dynamo"

// fleets is the simulation of fleets, and seeds is how many of them are run.
const (
	fleets = "TestSimulate"
	seeds  = 100
)

// patience is how long the tests of one mutant may run.
const patience = 5 * time.Minute

// Every rule that is taken away is missed by a test. The store as it is passes the
// same tests.
func TestEveryRuleIsHeld(t *testing.T) {
	all := mutants()
	patterns := make(map[string]bool) // those of the simulation of fleets are run by make test
	for _, m := range all {
		patterns[m.found] = m.found != fleets
	}
	whole := build(t, nil)
	for pattern, due := range patterns {
		if !due {
			continue
		}
		if out, failed := run(t, whole, pattern); failed {
			t.Fatalf("%s fails on the store as it is:\n%s", pattern, out)
		}
	}
	for _, m := range all {
		t.Run(m.name, func(t *testing.T) {
			began := time.Now()
			out, failed := run(t, build(t, &m), m.found)
			if !failed {
				t.Fatalf("%s passes without the rule", m.found)
			}
			t.Logf("found by %s in %v", firstFailure(out), time.Since(began).Round(100*time.Millisecond))
		})
	}
}

// build compiles the tests of the store without a rule; nil takes none away.
func build(t *testing.T, m *mutant) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "dynamo.test")
	args := []string{"test", "-c", "-o", binary}
	if m != nil {
		args = append(args, "-overlay", overlay(t, m))
	}
	cmd := exec.CommandContext(t.Context(), "go", append(args, ".")...)
	cmd.Dir = dynamo
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("the tests do not compile: %v\n%s", err, out)
	}
	return binary
}

// overlay writes the file that makes the go command read a file without the rule.
func overlay(t *testing.T, m *mutant) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(dynamo, m.file))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), m.rule); n != 1 {
		t.Fatalf("%s has the rule %d times, want once:\n%s", m.file, n, m.rule)
	}
	dir := t.TempDir()
	without, list := filepath.Join(dir, "without.go"), filepath.Join(dir, "overlay.json")
	replaced, err := json.Marshal(map[string]map[string]string{"Replace": {path: without}})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{without: []byte(strings.Replace(string(text), m.rule, m.without, 1)), list: replaced} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return list
}

// run runs the tests that match a pattern, up to the first failure. The simulation of
// fleets runs so many that only a few schedules need to miss a rule.
func run(t *testing.T, binary, pattern string) (out string, failed bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, "-test.run", "^("+pattern+")$", "-test.v", "-test.failfast", "-test.timeout", patience.String())
	if pattern == fleets {
		cmd.Args = append(cmd.Args, "-seeds", strconv.Itoa(seeds))
	}
	cmd.Dir = dynamo
	reader, writer := io.Pipe()
	cmd.Stdout, cmd.Stderr = writer, writer
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { // ends with the program
		err := cmd.Wait()
		_ = writer.Close() // never fails
		ended <- err
	}()
	var all strings.Builder
	for lines := bufio.NewScanner(reader); lines.Scan(); {
		fmt.Fprintln(&all, lines.Text())
		if strings.Contains(lines.Text(), "it happens again with:") && !failed {
			failed = true
			_ = cmd.Process.Kill() // fails if it has ended
		}
	}
	err := <-ended
	if !strings.Contains(all.String(), "=== RUN ") {
		t.Fatalf("no test matches %s:\n%s", pattern, all.String())
	}
	return all.String(), failed || err != nil
}

// firstFailure returns the name of the first test that failed; the simulation of fleets
// is ended before it says that it did.
func firstFailure(out string) string {
	for line := range strings.Lines(out) {
		if _, name, ok := strings.Cut(line, "--- FAIL: "); ok {
			name, _, _ = strings.Cut(name, " ")
			return name
		}
	}
	return "TestSimulate"
}
