package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/ratelimit/ratelimit/internal/command"
)

// Sequences of terminals.
const (
	enter     = "\x1b[?1049h\x1b[?25l" // another screen, without a cursor
	leave     = "\x1b[?25h\x1b[?1049l"
	home      = "\x1b[H"
	clearLine = "\x1b[K"
	clearRest = "\x1b[J"
)

const (
	ctrlC = 3
	ctrlD = 4
)

// liveScreen is a terminal.
type liveScreen struct {
	In    *os.File // keys
	Out   *os.File
	Every time.Duration // from one text to the next
}

// IsTerminal reports whether both files are terminals.
func (s *liveScreen) IsTerminal() bool {
	return term.IsTerminal(int(s.In.Fd())) && term.IsTerminal(int(s.Out.Fd())) // #nosec G115 -- descriptors are small
}

// Run shows the texts that draw returns, the first at once, until the user ends it, ctx ends,
// or draw fails. Only the last is an error. Lines beyond the size of the terminal are cut.
func (s *liveScreen) Run(ctx context.Context, draw func(context.Context) (string, error)) (err error) {
	before, err := term.MakeRaw(int(s.In.Fd())) // #nosec G115 -- a descriptor is small
	if err != nil {
		return fmt.Errorf("the terminal: %w", err)
	}
	defer func() {
		_, _ = io.WriteString(s.Out, leave)      // the terminal has gone, if it fails
		_ = term.Restore(int(s.In.Fd()), before) // #nosec G115 -- the same
	}()
	if _, err := io.WriteString(s.Out, enter); err != nil {
		return err
	}
	for {
		text, err := draw(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if _, err := io.WriteString(s.Out, s.fit(text)); err != nil {
			return err
		}
		if s.ended(ctx) {
			return nil
		}
	}
}

// ended waits for the next text, and reports whether there is to be none.
func (s *liveScreen) ended(ctx context.Context) bool {
	for next := time.Now().Add(s.Every); ; {
		rest := time.Until(next)
		if rest <= 0 {
			return false
		}
		if ctx.Err() != nil {
			return true
		}
		if !command.Pressed(s.In, min(rest, command.Glance)) {
			continue
		}
		var key [1]byte
		n, err := s.In.Read(key[:])
		if n == 0 || err != nil {
			return true // the terminal has gone
		}
		switch key[0] {
		case 'q', 'Q', ctrlC, ctrlD:
			return true
		}
	}
}

// fit returns a text as it is written, cut to the size of the terminal.
func (s *liveScreen) fit(text string) string {
	width, height, err := term.GetSize(int(s.Out.Fd())) // #nosec G115 -- a descriptor is small
	if err != nil || width <= 0 || height <= 0 {
		width, height = 80, 24
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	lines = lines[:min(len(lines), height)]
	for i, line := range lines {
		lines[i] = cut(line, width) + clearLine
	}
	return home + strings.Join(lines, "\r\n") + clearRest
}

// cut returns the first characters of a line.
func cut(line string, width int) string {
	if utf8.RuneCountInString(line) <= width {
		return line
	}
	return string([]rune(line)[:width])
}
