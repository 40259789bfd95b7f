package stack_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/stack"
)

// Names that no rule can have are refused before the table is asked.
func TestPrepareChecksNames(t *testing.T) {
	for _, name := range []string{"", strings.Repeat("n", 201)} {
		_, err := stack.Prepare(t.Context(), nil, "limits", []string{"web", name}, time.Now())
		if !errors.Is(err, stack.ErrInvalid) || !strings.Contains(err.Error(), "it must be 1 to 200 bytes") {
			t.Errorf("namespace %.10q: got %v, want the right length", name, err)
		}
	}
}
