package cli

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/ratelimit/ratelimit/internal/command"
)

// asking has confirm ask on a terminal, and returns its answer.
func asking(ctx context.Context, t *testing.T) (write func(string), answer <-chan error) {
	t.Helper()
	user, program := terminal(t)
	cmd := &cobra.Command{Use: "delete"}
	cmd.SetContext(ctx)
	cmd.SetIn(program)
	r, w := io.Pipe()
	cmd.SetErr(w)
	ended := make(chan error, 1)
	go func() { ended <- new(changing).confirm(cmd, "it") }() //nolint:contextcheck // the command has it
	const question = "Delete it? [y/N] "
	if _, err := io.ReadFull(r, make([]byte, len(question))); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, r) }() // until the test ends
	t.Cleanup(func() { _ = w.Close() })
	return func(text string) {
		if _, err := user.WriteString(text); err != nil {
			t.Error(err)
		}
	}, ended
}

// An interrupt ends the question at once, and nothing is deleted.
func TestAnInterruptAnswersTheQuestion(t *testing.T) {
	ctx, interrupt := context.WithCancelCause(t.Context())
	write, answer := asking(ctx, t)
	write("y") // without the end of the line
	interrupt(command.ErrInterrupted)
	select {
	case err := <-answer:
		if code, quiet := command.ExitCode(err); !errors.Is(err, command.ErrInterrupted) || code != command.ExitFailure || quiet {
			t.Errorf("got %v with exit code %d, quiet %t", err, code, quiet)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the question goes on")
	}
}

func TestOnlyYesDeletes(t *testing.T) {
	for text, want := range map[string]bool{"y\n": true, "Yes\n": true, "n\n": false, "\n": false, "\x04": false} {
		write, answer := asking(t.Context(), t)
		write(text)
		if err := <-answer; (err == nil) != want {
			t.Errorf("%q: %v", text, err)
		}
	}
}
