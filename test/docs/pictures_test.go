package docs_test

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// update has the file rewritten after pictures were taken.
var update = flag.Bool("update", false, "write docs/pictures.txt")

// The pictures of the console and of the dashboard are of those as they are.
func TestPictures(t *testing.T) {
	var stamps strings.Builder
	for _, of := range [...]struct{ picture, pattern string }{{"console.png", "pkg/admin/console/*"}, {"dashboard.png", "deploy/grafana/*"}} {
		_, _ = fmt.Fprintf(&stamps, "%s shows %s, whose SHA-256 is %x\n", of.picture, of.pattern, digest(t, of.pattern)) // it never fails
	}
	want := stamps.String()
	path := filepath.Join("..", "..", "docs", "pictures.txt")
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("pictures are older than what they show: `make pictures` takes them again. docs/pictures.txt is\n%s; want\n%s", got, want)
	}
}

// digest is that of the files of a pattern, in order of their names.
func digest(t *testing.T, pattern string) []byte {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", pattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files are %s: %v", pattern, err)
	}
	sum := sha256.New()
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = fmt.Fprintf(sum, "%s %d\n%s", filepath.Base(file), len(text), text) // it never fails
	}
	return sum.Sum(nil)
}
