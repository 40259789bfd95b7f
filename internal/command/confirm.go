package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// Glance is how long a wait for a key lasts before the context is checked.
const Glance = 100 * time.Millisecond

// ConfirmYes asks a question, and fails where the answer is not yes. The end of the context is an answer, too.
func ConfirmYes(ctx context.Context, in io.Reader, out io.Writer, question string) error {
	if _, err := fmt.Fprint(out, question); err != nil {
		return Failed(err)
	}
	switch answer, err := Answer(ctx, in); {
	case err != nil:
		return Failed(fmt.Errorf("%w: nothing was changed", err))
	case answer != "yes":
		return Failed(errors.New("not confirmed; nothing was changed. --yes does not ask"))
	}
	return nil
}

// Answer reads a line, without spaces around it; no line is "". Where the input is a file, the end of the context ends
// the wait, with its cause.
func Answer(ctx context.Context, in io.Reader) (string, error) {
	if file, ok := in.(*os.File); ok {
		for !Pressed(file, Glance) {
			if ctx.Err() != nil {
				return "", context.Cause(ctx)
			}
		}
	}
	line, err := bufio.NewReader(io.LimitReader(in, 100)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	return strings.TrimSpace(line), nil
}
