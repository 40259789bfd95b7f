//go:build mutants

package mutants_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// folder returns that of a package: of one of the store's, or with its path from the root of the module.
func folder(pkg string) string {
	if strings.HasPrefix(pkg, "pkg/") {
		return filepath.Join("../..", pkg)
	}
	return filepath.Join("../../pkg/internal/fleet", pkg)
}

// rapid reports whether tests of a package draw by rapid, which has flags then.
func rapid(pkg string) bool {
	return slices.Contains([]string{"plan", "engine", "catalog", "awsdb", "pkg/tokenbucket", "pkg/embedded", "pkg/reservation", "pkg/aggregator"}, pkg)
}

// patience is how long the tests of one mutant may run.
const patience = 2 * time.Minute

// mutant is the store without one of its rules.
type mutant struct {
	name    string
	rule    string // its name in the comment "// rule: NAME", which ends its first line; "" = name
	file    string // in the folder of its package
	lines   int    // of the rule; 0 = 1
	without string // lines in its place; "" = none
	tested  string // the package of the tests; "" = its own
	found   string // the test that fails without the rule

	pkg string
}

// in says of which package mutants are.
func in(pkg string, mutants []mutant) []mutant {
	for i := range mutants {
		m := &mutants[i]
		m.pkg = pkg
		if m.tested == "" {
			m.tested = pkg
		}
	}
	return mutants
}

func everyRule() []mutant {
	return slices.Concat(planRules(), leaseRules(), laneRules(), shareRules(), breakerRules(), auditRules(), kinRules(), turnRules(), historyRules(), extraRules(), auditStreamRules(), unseenRules())
}

// Each rule that is taken away is missed by a named test.
// The store as it is passes the same tests.
func TestEveryRuleIsHeld(t *testing.T) {
	t.Parallel()
	all := everyRule()
	tested := map[string]bool{}
	for _, m := range all {
		if !tested[m.tested] {
			tested[m.tested] = true
			holds(t, m.tested, all)
		}
	}
	for _, m := range all {
		t.Run(m.pkg+"/"+m.name, func(t *testing.T) {
			t.Parallel()
			binary := build(t, m.tested, overlay(t, &m))
			out, passed := run(t, binary, m.tested, m.found)
			if passed {
				t.Fatalf("%s passes without the rule", m.found)
			}
			test := firstFailure(out)
			if test == "" {
				t.Fatalf("%s ends without a failed test:\n%s", m.found, out)
			}
			t.Logf("found by %s", test)
		})
	}
}

// holds requires that the tests of a package that find mutants pass on the store as it is.
func holds(t *testing.T, pkg string, all []mutant) {
	t.Helper()
	binary := build(t, pkg, "")
	var found []string
	for _, m := range all {
		if m.tested == pkg && !slices.Contains(found, m.found) {
			found = append(found, m.found)
		}
	}
	pattern := strings.Join(found, "|")
	out, passed := run(t, binary, pkg, pattern)
	if !passed {
		t.Fatalf("%s fails on the store as it is:\n%s", pattern, out)
	}
	for _, test := range found {
		if !strings.Contains(out, "=== RUN   "+test+"\n") {
			t.Errorf("package %s has no %s", pkg, test)
		}
	}
}

// build compiles the tests of a package, with files replaced as a list says; "" = none.
func build(t *testing.T, pkg, replaced string) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), path.Base(pkg)+".test")
	args := []string{"test", "-c", "-ldflags=-s -w", "-o", binary}
	if replaced != "" {
		args = append(args, "-overlay", replaced)
	}
	cmd := exec.CommandContext(t.Context(), "go", append(args, ".")...)
	cmd.Dir = folder(pkg)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("the tests do not compile: %v\n%s", err, out)
	}
	return binary
}

// overlay writes the list that makes the go command read a file without the rule.
func overlay(t *testing.T, m *mutant) string {
	t.Helper()
	source, err := filepath.Abs(filepath.Join(folder(m.pkg), m.file))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	without, list := filepath.Join(dir, "without.go"), filepath.Join(dir, "overlay.json")
	replaced, err := json.Marshal(map[string]map[string]string{"Replace": {source: without}})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{without: []byte(changed(t, m, source)), list: replaced} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return list
}

// marker begins a comment that ends the first line of a rule. The comment has the names of all rules
// that begin in the line.
const marker = " // rule: "

// changed returns the text of a file without a rule.
func changed(t *testing.T, m *mutant, source string) string {
	t.Helper()
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	name := cmp.Or(m.rule, m.name)
	lines := strings.SplitAfter(string(text), "\n")
	var at []int
	for i, line := range lines {
		_, names, _ := strings.Cut(strings.TrimSuffix(line, "\n"), marker)
		if slices.Contains(strings.Split(names, "; "), name) {
			at = append(at, i)
		}
	}
	if len(at) != 1 {
		t.Fatalf("%s has the comment %q %d times, want once", m.file, strings.TrimSpace(marker)+" "+name, len(at))
	}
	return strings.Join(slices.Replace(lines, at[0], at[0]+max(m.lines, 1), m.without+"\n"), "")
}

// Each rule has its comment once.
func TestEveryRuleStandsOnce(t *testing.T) {
	t.Parallel()
	all := everyRule()
	for _, m := range simulatedRules() {
		all = append(all, m.mutant)
	}
	for _, m := range all {
		t.Run(m.pkg+"/"+m.name, func(t *testing.T) {
			t.Parallel()
			changed(t, &m, filepath.Join(folder(m.pkg), m.file))
		})
	}
}

// Each comment of a rule is of a mutant.
func TestEveryCommentHasAMutant(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, m := range everyRule() {
		known[cmp.Or(m.rule, m.name)] = true
	}
	for _, m := range simulatedRules() {
		known[cmp.Or(m.rule, m.name)] = true
	}
	err := filepath.WalkDir("../../pkg", func(path string, _ os.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" {
			return err
		}
		text, err := os.ReadFile(path)
		for line := range strings.SplitSeq(string(text), "\n") {
			_, names, ok := strings.Cut(line, marker)
			for name := range strings.SplitSeq(names, "; ") {
				if ok && !known[name] {
					t.Errorf("%s: no mutant is without the rule %q", path, name)
				}
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// run runs the tests of a pattern, up to the first failure, and reports whether
// all passed.
func run(t *testing.T, binary, pkg, pattern string) (out string, passed bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, "-test.run", "^("+pattern+")$", "-test.v", "-test.failfast", "-test.timeout", patience.String())
	if rapid(pkg) {
		cmd.Args = append(cmd.Args, "-rapid.nofailfile")
	}
	cmd.Dir = folder(pkg)
	text, err := cmd.CombinedOutput()
	if !bytes.Contains(text, []byte("=== RUN ")) {
		t.Fatalf("no test of %s matches %s:\n%s", pkg, pattern, text)
	}
	return string(text), err == nil
}

// firstFailure returns the name of the first test that failed, "" = none.
func firstFailure(out string) string {
	for line := range strings.Lines(out) {
		if _, name, ok := strings.Cut(line, "--- FAIL: "); ok {
			name, _, _ = strings.Cut(name, " ")
			return name
		}
	}
	return ""
}
