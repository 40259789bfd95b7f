package config_test

import (
	"os"
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/config"
)

// The documentation names each setting that takes effect at a start only, or the section that it is in.
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
	for _, path := range config.StartOnly() {
		section, _, _ := strings.Cut(path, ".")
		if !strings.Contains(sentence, "`"+path+"`") && !strings.Contains(sentence, "`"+section+"`") {
			t.Errorf("docs/configuration.md does not say of %s that it takes effect at a start only", path)
		}
	}
}
