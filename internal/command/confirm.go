package command

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
)

// ConfirmYes asks a question, and fails where the answer is not yes.
func ConfirmYes(in io.Reader, out io.Writer, question string) error {
	_, err := fmt.Fprint(out, question)
	if err != nil {
		return Failed(err)
	}
	line, err := bufio.NewReader(io.LimitReader(in, 100)).ReadString('\n')
	if strings.TrimSpace(line) != "yes" {
		return Failed(errors.Join(errors.New("not confirmed; nothing was changed. --yes does not ask"), ignoreEOF(err)))
	}
	return nil
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
