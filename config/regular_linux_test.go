package config_test

import (
	"errors"
	"testing"

	"github.com/ratelimit/ratelimit/config"
)

// A file of /proc has a size of 0 and content all the same: the bound applies to the
// bytes read.
func TestReadBoundsWhatHasNoSize(t *testing.T) {
	if _, err := read(t, "/proc/self/status", 10); !errors.Is(err, config.ErrFileTooLarge) {
		t.Errorf("got %v, want ErrFileTooLarge", err)
	}
}
