package lane

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestWords: the package comment explains at most 20 words, each of which is a type or a state.
func TestWords(t *testing.T) {
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	_, rows, _ := strings.Cut(string(text), "// # Words\n")
	rows, _, _ = strings.Cut(rows, "// # ")
	words := regexp.MustCompile(`(?m)^//\t(\w+) `).FindAllStringSubmatch(rows, -1)
	if len(words) == 0 || len(words) > 20 {
		t.Errorf("%d words, want 1 to 20", len(words))
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var code strings.Builder
	for _, name := range files {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		code.Write(source)
	}
	for _, w := range words {
		isState := false
		for s := range states {
			isState = isState || state(s).String() == w[1] // #nosec G115 -- few
		}
		if !isState && !strings.Contains(code.String(), "\ntype "+w[1]+" ") {
			t.Errorf("%q is no type, and no state of a request", w[1])
		}
	}
}
