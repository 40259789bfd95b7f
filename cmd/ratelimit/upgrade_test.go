package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/pkg/dynamo"
)

// TestUpgradeIsForTables: the command refuses a store without a table, and a watch that sees
// nothing. What it does on a table is tested in test/upgrade.
func TestUpgradeIsForTables(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ratelimit.yaml")
	if err := os.WriteFile(path, []byte("domains: [{domain: d}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"upgrade", "--config", path}, "only with dynamodb"},
		{[]string{"upgrade", "--config", path, "--watch", "0s"}, "--watch"},
		{[]string{"upgrade", path}, "flags only"},
	} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), test.args, &out, &errs); code != exitUsage || !strings.Contains(errs.String(), test.want) {
			t.Errorf("%q: exit code %d, %q; want %d and %q", test.args, code, errs.String(), exitUsage, test.want)
		}
	}
}

// TestUpgradeAsks: only yes goes on, and a long list of namespaces is cut.
func TestUpgradeAsks(t *testing.T) {
	for answer, want := range map[string]bool{"yes\n": true, "yes": true, "y\n": false, "": false, "no\nyes\n": false} {
		var out bytes.Buffer
		if err := confirmYes(strings.NewReader(answer), &out, "?"); (err == nil) != want {
			t.Errorf("%q: %v, want %t", answer, err, want)
		}
	}
	var out bytes.Buffer
	names := make([]string, 30)
	if err := describeUpgrade(&out, "t", names, 2, &dynamo.OldReplicas{Looked: 5, Old: 4}, defaultUpgradeWatch); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(out.String(), "\n"); lines != 23 || !strings.Contains(out.String(), "and 10 more") {
		t.Errorf("%d lines, want 23:\n%s", lines, out.String())
	}
}
