package config_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/config"
)

var update = flag.Bool("update", false, "write what is reported to testdata/bad/*.golden")

// TestBad compares every problem of the files in testdata/bad with the golden file beside it: the
// mistake, its place, and the correction.
func TestBad(t *testing.T) {
	t.Chdir("testdata/bad")
	names, err := filepath.Glob("*.yaml")
	if err != nil || len(names) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(name, ".yaml"), func(t *testing.T) {
			c, err := config.Load(name, config.Options{})
			if err == nil {
				t.Fatalf("it loads, with warnings\n%v", c.Warnings)
			}
			got := err.Error() + "\n"
			golden := strings.TrimSuffix(name, ".yaml") + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}
