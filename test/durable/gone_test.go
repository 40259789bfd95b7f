package durable_test

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const fileName = "ratelimit.db"

// status returns the status code and the body of /readyz.
func (p *program) status(t *testing.T) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+p.http+"/readyz", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	var text strings.Builder
	_ = response.Write(&text)
	return response.StatusCode, text.String()
}

// untilStatus waits until /readyz answers with a code.
func (p *program) untilStatus(t *testing.T, want int) string {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		code, text := p.status(t)
		if code == want {
			return text
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("/readyz does not answer %d:\n%s\n%s", want, text, p.wrote())
		}
	}
}

// A data file that is removed is noticed, decisions stay exact, and the next start does
// not begin with full buckets in silence.
func TestRemovedFileIsNoticed(t *testing.T) {
	h := newHistory()
	dir, config := t.TempDir(), configuration(t, rules)
	p := start(t, dir, config)
	c, end := h.dial(t, p)
	c.take(t.Context(), "small", "u", 2, map[string]int64{"n": 2})
	if err := os.Remove(filepath.Join(dir, fileName)); err != nil {
		t.Fatal(err)
	}
	if text := p.untilStatus(t, http.StatusServiceUnavailable); !strings.Contains(text, "the data file is gone") || strings.Contains(text, dir) {
		t.Errorf("/readyz does not say that the file is gone, or says where it was:\n%s", text)
	}
	if got := p.metric(t, "ratelimit_store_file_missing"); got != 1 {
		t.Errorf("the metric is %v, want 1", got)
	}
	if !strings.Contains(p.wrote(), `"level":"ERROR"`) || !strings.Contains(p.wrote(), filepath.Join(dir, fileName)+" is gone") {
		t.Errorf("the log has no error with the path:\n%s", p.wrote())
	}
	if got := p.balance(t, "small", "u", "n"); got > 2 {
		t.Errorf("without the file the bucket has %v, want at most 1 and the refill", got)
	}
	end()
	p.stop(t)
	refused(t, launch(t, dir, config), fileName+" is missing", "ratelimit.made", "ratelimit restore", "--new-data")
	start(t, dir, config, func(cmd *exec.Cmd) { cmd.Args = append(cmd.Args, "--new-data") }).stop(t)
	start(t, dir, config)
}

// A directory that is moved away is noticed by the process that has it open; the one that
// begins in its place is not disturbed. Put back, it is ready again.
func TestMovedDirectoryIsNoticed(t *testing.T) {
	dir, config := filepath.Join(t.TempDir(), "data"), configuration(t, rules)
	first := start(t, dir, config)
	if err := os.Rename(dir, dir+".moved"); err != nil {
		t.Fatal(err)
	}
	first.untilStatus(t, http.StatusServiceUnavailable)
	if err := os.Rename(dir+".moved", dir); err != nil {
		t.Fatal(err)
	}
	first.untilStatus(t, http.StatusOK)
	if err := os.Rename(dir, dir+".moved"); err != nil {
		t.Fatal(err)
	}
	second := start(t, dir, config)
	if text := first.untilStatus(t, http.StatusServiceUnavailable); !strings.Contains(text, "gone") {
		t.Error(text)
	}
	first.stop(t)
	if _, err := os.Stat(filepath.Join(dir, "admin.sock")); err != nil {
		t.Errorf("the first process took the second's socket along: %v", err)
	}
	second.untilStatus(t, http.StatusOK)
	refused(t, launch(t, dir, config), "is open in process")
}
