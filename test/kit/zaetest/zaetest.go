// Package zaetest makes tables of zae-limiter as the package from its index makes them, for
// tests of their readers.
package zaetest

import (
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

//go:embed make.py
var script string

// Newest is the newest version of the package that is installed.
const Newest = "0.17.0"

// Versions returns the versions that are installed, one for each layout and the newest.
func Versions() []string { return []string{"0.9.0", "0.10.0", "0.10.1", Newest} }

// MakeTable makes a table with a version of the package, at an endpoint of DynamoDB Local. It
// has entities of users, and the records that make.py says. `make tools` installs the package.
func MakeTable(tb testing.TB, version, endpoint, table string, users int) {
	tb.Helper()
	root := installed(tb)
	cmd := exec.CommandContext(tb.Context(), filepath.Join(root, "bin", "python"), "-W", "ignore", "-", endpoint, table, strconv.Itoa(users)) // #nosec G204 -- of the tests
	cmd.Stdin = strings.NewReader(script)
	cmd.Env = append(os.Environ(), "AWS_ACCESS_KEY_ID=local", "AWS_SECRET_ACCESS_KEY=local", "AWS_EC2_METADATA_DISABLED=true")
	if version != Newest {
		cmd.Env = append(cmd.Env, "PYTHONPATH="+filepath.Join(root, version))
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("making table %s with zae-limiter %s: %v\n%s", table, version, err, out)
	}
}

// installed returns the folder where make has put the package: .cache/zae-limiter beside
// the go.mod of the program.
func installed(tb testing.TB) string {
	tb.Helper()
	dir, err := os.Getwd()
	if err != nil {
		tb.Fatal(err)
	}
	for root := dir; ; root = filepath.Dir(root) {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			root = filepath.Join(root, ".cache", "zae-limiter")
			if _, err := os.Stat(filepath.Join(root, ".installed")); err != nil {
				tb.Fatalf("zae-limiter is not installed; `make tools` installs it: %v", err)
			}
			return root
		}
		if root == filepath.Dir(root) {
			tb.Fatalf("no go.mod above %s", dir)
		}
	}
}
