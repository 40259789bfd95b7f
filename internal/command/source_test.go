package command

import (
	"path/filepath"
	"testing"

	"github.com/ratelimit/ratelimit/internal/environment"
)

// The command that shows the mistakes names all files, also those of the environment of another service, and fits any
// working directory.
func TestTheCheckNamesAllFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	s := Source{File: "a.yaml", Rules: []string{"b"}}
	s.SetEnvironment(&environment.Settings{Rules: "runtime/config"})
	if got, want := s.Check(), "ratelimit check --config a.yaml --rules b --rules runtime/config"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	path := func(name string) string {
		abs, err := filepath.Abs(name)
		if err != nil {
			t.Fatal(err)
		}
		return abs
	}
	if got, want := s.CheckAnywhere(), "ratelimit check --config "+path("a.yaml")+" --rules "+path("b")+" --rules "+path("runtime/config"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
