package command

import (
	"bytes"
	"strings"
	"testing"
)

// TestOnlyYesConfirms: any answer but yes stops a command that asks.
func TestOnlyYesConfirms(t *testing.T) {
	for answer, want := range map[string]bool{"yes\n": true, "yes": true, "y\n": false, "": false, "no\nyes\n": false} {
		var out bytes.Buffer
		if err := ConfirmYes(strings.NewReader(answer), &out, "?"); (err == nil) != want {
			t.Errorf("%q: %v, want %t", answer, err, want)
		}
	}
}
