package reference_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/test/envoytest"
)

var update = flag.Bool("update", false, "write the recorded answers anew")

// Both services give the same answers to each call, but where a reason for a difference stands. The answers of both are
// recorded in testdata/answers.txt.
func TestAnswers(t *testing.T) {
	if testing.Short() {
		t.Skip("builds another service")
	}
	p, cases := build(t), readCases(t)
	records := make([]string, len(cases))
	t.Run("cases", func(t *testing.T) {
		for i, c := range cases {
			t.Run(c.Name, func(t *testing.T) {
				t.Parallel()
				var problems []string
				for range attempts {
					if records[i], problems = record(t, p, &c); len(problems) == 0 {
						return
					}
				}
				t.Error(strings.Join(problems, "\n"))
			})
		}
	})
	all := strings.Join(records, "\n")
	golden := filepath.Join("testdata", "answers.txt")
	if *update && !t.Failed() {
		if err := os.WriteFile(golden, []byte(all), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if want := read(t, golden); want != all {
		t.Errorf("the answers are not those of %s; -update writes it anew:\n%s", golden, all)
	}
}

// attempts is how often a case is asked: on a busy machine a window can end between two calls, or a bucket refill.
const attempts = 3

// record asks both services the calls of a case, and returns their answers, and those that must not differ.
func record(t *testing.T, p programs, c *testCase) (text string, problems []string) {
	t.Helper()
	var out strings.Builder
	fmt.Fprintf(&out, "# %s\n", c.Name)
	there, here := startBoth(t, p, c.rules(t, p.module), c.Env)
	for _, call := range c.Calls {
		a, err := call.ask(t.Context(), t, there)
		theirs := answerText(a, err)
		a, err = call.ask(t.Context(), t, here)
		ours := answerText(a, err)
		fmt.Fprintf(&out, "%s\n", call.Call)
		switch {
		case theirs == ours && call.Differs == "":
			fmt.Fprintf(&out, "  both  %s\n", ours)
		case theirs == ours:
			problems = append(problems, call.Call+": the answers are the same, and a reason for a difference stands there")
		default:
			fmt.Fprintf(&out, "  there %s\n  here  %s\n", theirs, ours)
			if call.Differs == "" {
				problems = append(problems, fmt.Sprintf("%s:\nthere %s\nhere  %s", call.Call, theirs, ours))
			}
			fmt.Fprintf(&out, "  why   %s\n", call.Differs)
		}
	}
	return out.String(), problems
}

// loads reports whether the other service's own check reads a file.
func loads(t *testing.T, p programs, name string) bool {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "rules.yaml"), []byte(read(t, name)), 0o600); err != nil {
		t.Fatal(err)
	}
	return exec.CommandContext(t.Context(), p.check, "-config_dir", dir).Run() == nil
}

// Each fixture of its tests is read by both, or by neither.
func TestFixtures(t *testing.T) {
	if testing.Short() {
		t.Skip("needs the module of another service")
	}
	p := build(t)
	files, err := filepath.Glob(filepath.Join(p.module, "test", "config", "*.yaml"))
	if err != nil || len(files) < 15 {
		t.Fatalf("%d fixtures, %v", len(files), err)
	}
	var refused []string
	for _, file := range files {
		there := loads(t, p, file)
		here := check(t, file)
		if there != here {
			t.Errorf("%s: read there: %t, here: %t", filepath.Base(file), there, here)
		}
		if !there {
			refused = append(refused, filepath.Base(file))
		}
	}
	if len(refused) < 10 || slices.Contains(refused, "basic_config.yaml") {
		t.Errorf("refused: %v", refused)
	}
}

// Its integration scripts run against this program, through a real Envoy with the configuration of its example.
func TestScripts(t *testing.T) {
	envoytest.Need(t)
	p := build(t)
	scripts, err := filepath.Glob(filepath.Join(p.module, "integration-test", "scripts", "*.sh"))
	if err != nil || len(scripts) < 5 {
		t.Fatalf("%d scripts, %v", len(scripts), err)
	}
	for _, script := range scripts {
		name := filepath.Base(script)
		t.Run(name, func(t *testing.T) {
			err := runScript(t, p, script)
			if name == "value-included-in-stats-key-when-unspecified.sh" {
				// It wants the value of a descriptor in the name of a metric, which this program never has. Its calls
				// are limited as it wants.
				if err == nil || !strings.Contains(err.Error(), "Overlimit should be 1") {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
}
