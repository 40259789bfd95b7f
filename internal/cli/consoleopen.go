package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"html/template"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// redirect is a page that leads to another one.
const redirect = `<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><meta http-equiv="refresh" content="0;url={{.}}"><title>ratelimit</title><a href="{{.}}">The console</a>
`

// openBrowser has the browser of this user open a link, by a file that only this user can read: other users see the
// arguments of a process. The file is there until the context ends, as browsers may start slowly.
func openBrowser(ctx context.Context, link string) (err error) {
	page, err := template.New("").Parse(redirect)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := page.Execute(&text, template.URL(link)); err != nil { //nolint:gosec // the link is this program's own
		return err
	}
	dir, err := os.MkdirTemp("", "ratelimit-console-") // mode 0700
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	path := filepath.Join(dir, "console.html")
	if err := os.WriteFile(path, text.Bytes(), 0o600); err != nil {
		return err
	}
	program := "xdg-open"
	if runtime.GOOS == "darwin" {
		program = "open"
	}
	if out, err := exec.CommandContext(ctx, program, path).CombinedOutput(); err != nil { //nolint:gosec // one of two names, and a file that was just made
		return fmt.Errorf("%s: %w %.200s", program, err, bytes.TrimSpace(out))
	}
	<-ctx.Done()
	return nil
}
