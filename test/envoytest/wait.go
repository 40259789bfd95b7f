package envoytest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Await calls done until it returns nil, and fails the test with its last error
// when that takes longer than 20 seconds.
func Await(tb testing.TB, what string, done func() error) {
	tb.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		err := done()
		if err == nil {
			return
		}
		select {
		case <-again.C:
		case <-tb.Context().Done():
			tb.Fatalf("%s: %v: %v", what, tb.Context().Err(), err)
		case <-deadline.C:
			tb.Fatalf("%s: not within %v: %v", what, patience, err)
		}
	}
}

// Stays calls still again and again for a second, and fails the test when it returns
// an error. A second is long for any late event on this machine.
func Stays(tb testing.TB, what string, still func() error) {
	tb.Helper()
	end := time.NewTimer(time.Second)
	defer end.Stop()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		if err := still(); err != nil {
			tb.Fatalf("%s: %v", what, err)
		}
		select {
		case <-again.C:
		case <-end.C:
			return
		case <-tb.Context().Done():
			tb.Fatalf("%s: %v", what, tb.Context().Err())
		}
	}
}

// module is the repository's.
const module = "github.com/ratelimit/ratelimit"

// Root returns the directory of the repository. Modules below it are part of it.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(text), "module "+module+"\n") {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fmt.Errorf("no go.mod of %s above the working directory", module)
		}
		dir = parent
	}
}
