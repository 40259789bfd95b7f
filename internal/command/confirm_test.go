package command

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

// TestOnlyYesConfirms: any answer but yes stops a command that asks.
func TestOnlyYesConfirms(t *testing.T) {
	for answer, want := range map[string]bool{"yes\n": true, "yes": true, "y\n": false, "": false, "no\nyes\n": false} {
		var out bytes.Buffer
		if err := ConfirmYes(t.Context(), strings.NewReader(answer), &out, "?"); (err == nil) != want {
			t.Errorf("%q: %v, want %t", answer, err, want)
		}
	}
}

// An interrupt ends the question at once.
func TestAnInterruptConfirmsNothing(t *testing.T) {
	in, user, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(in.Close(), user.Close()) })
	ctx, interrupt := context.WithCancelCause(t.Context())
	answer := make(chan error, 1)
	go func() { answer <- ConfirmYes(ctx, in, new(bytes.Buffer), "?") }()
	interrupt(ErrInterrupted)
	select {
	case err := <-answer:
		if code, _ := ExitCode(err); !errors.Is(err, ErrInterrupted) || code != ExitFailure {
			t.Errorf("got %v with exit code %d", err, code)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the question goes on")
	}
}
