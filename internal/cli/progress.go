package cli

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"
)

// progressEvery is how often a line of progress is written: on a terminal over the one
// before, elsewhere below it.
const (
	progressEvery     = 100 * time.Millisecond
	progressEveryFile = 10 * time.Second
)

// progress says on the standard error how far long work has come.
type progress struct {
	w        io.Writer
	things   string
	terminal bool
	every    time.Duration
	last     time.Time
	shown    bool // a line stands on the terminal
}

func newProgress(w io.Writer, things string) *progress {
	p := &progress{w: w, things: things, every: progressEveryFile, last: time.Now()}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) { // #nosec G115 -- a descriptor is small
		p.terminal, p.every = true, progressEvery
	}
	return p
}

// show reports the work that is done. It is not safe for concurrent use.
func (p *progress) show(done, of int) { p.line(fmt.Sprintf("%d of %d %s", done, of, p.things)) }

// line reports the work in words, if it is time to.
func (p *progress) line(text string) {
	now := time.Now()
	if now.Sub(p.last) < p.every {
		return
	}
	p.last = now
	if p.terminal {
		_, _ = fmt.Fprintf(p.w, "\r\x1b[K%s", text) // the work matters, not the line
		p.shown = true
		return
	}
	_, _ = fmt.Fprintln(p.w, text)
}

// end clears the line.
func (p *progress) end() {
	if p.shown {
		_, _ = io.WriteString(p.w, "\r\x1b[K")
	}
}
