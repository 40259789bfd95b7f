package config

import (
	"os"
	"strings"
	"testing"
)

// The documentation names each setting that takes effect only at a start, or its section.
func TestStartOnlyIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	var sentence string
	for line := range strings.Lines(string(page)) {
		if strings.Contains(line, "take effect when the program is restarted") {
			sentence = line
		}
	}
	for _, s := range new(Config).startSettings() {
		section, _, _ := strings.Cut(s.path, ".")
		if !strings.Contains(sentence, "`"+s.path+"`") && !strings.Contains(sentence, "`"+section+"`") {
			t.Errorf("docs/configuration.md does not say of %s that it takes effect at a start only", s.path)
		}
	}
}
