package admin_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/pkg/admin"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// copier is an archive whose copy is a text.
type copier struct {
	text string
	err  error // of Backup, after the text
	got  string
}

func (c *copier) Backup(w io.Writer) (int64, error) {
	n, err := io.WriteString(w, c.text)
	return int64(n), errors.Join(err, c.err)
}

func (c *copier) Restore(_ context.Context, from io.Reader) error {
	data, err := io.ReadAll(from)
	c.got = string(data)
	if c.got == "bad" {
		return fmt.Errorf("%w: no backup", limiter.ErrInvalid)
	}
	return err
}

// overSocket sends a request like one over a Unix socket.
func overSocket(c *admin.Control, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	r.Host = "localhost"
	c.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, &net.UnixAddr{Net: "unix"})))
	return w
}

func TestCopies(t *testing.T) {
	broken := errors.New("the disk is gone")
	for _, test := range []struct {
		name, method, path string
		kind, body         string
		archive            admin.Archive
		code               int
		want, trailer      string
	}{
		{"a backup", "GET", "/v1/backup", "", "", &copier{text: "all"}, 200, "all", ""},
		{"one that fails at once", "GET", "/v1/backup", "", "", refusing{broken}, 503, "the disk is gone", ""},
		{"one that fails later", "GET", "/v1/backup", "", "", &copier{text: "half", err: broken}, 200, "half", "the disk is gone"},
		{"of memory", "GET", "/v1/backup", "", "", nil, 404, "serve --data DIR", ""},
		{"by another method", "POST", "/v1/backup", "", "", &copier{}, 405, "", ""},
		{"a restore", "POST", "/v1/restore", admin.BackupType, "all", &copier{}, 200, "restored", ""},
		{"of what is none", "POST", "/v1/restore", admin.BackupType, "bad", &copier{}, 400, "no backup", ""},
		{"as a form sends it", "POST", "/v1/restore", "text/plain", "all", &copier{}, 415, admin.BackupType, ""},
		{"to memory", "POST", "/v1/restore", admin.BackupType, "all", nil, 404, "serve --data DIR", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := httptest.NewRequestWithContext(t.Context(), test.method, test.path, strings.NewReader(test.body))
			r.Header.Set("Content-Type", test.kind)
			w := overSocket(admin.NewControl(admin.ControlConfig{Access: new(admin.Access), Explainer: new(admin.Explainer), Archive: test.archive}), r)
			if w.Code != test.code || !strings.Contains(w.Body.String(), test.want) {
				t.Errorf("%d %q, want %d %q", w.Code, w.Body, test.code, test.want)
			}
			if got := w.Result().Trailer.Get(admin.BackupError); got != test.trailer {
				t.Errorf("trailer %q, want %q", got, test.trailer)
			}
		})
	}
}

// refusing is an archive that fails every request.
type refusing struct{ err error }

func (r refusing) Backup(io.Writer) (int64, error)          { return 0, r.err }
func (r refusing) Restore(context.Context, io.Reader) error { return r.err }

// asking is an archive that notes which principal restores.
type asking struct {
	refusing

	see func(admin.Principal)
}

func (a asking) Restore(ctx context.Context, _ io.Reader) error {
	p, _ := admin.PrincipalFrom(ctx)
	a.see(p)
	return nil
}

// waiting is an archive whose backup waits until the test lets it go on.
type waiting struct {
	refusing

	begun, end chan struct{}
}

func (a waiting) Backup(io.Writer) (int64, error) {
	a.begun <- struct{}{}
	<-a.end
	return 0, nil
}

// There can be few backups at a time; a further one is refused for now.
func TestBackupsAtOnce(t *testing.T) {
	a := waiting{begun: make(chan struct{}), end: make(chan struct{})}
	c := admin.NewControl(admin.ControlConfig{Access: new(admin.Access), Explainer: new(admin.Explainer), Archive: a})
	ask := func() *httptest.ResponseRecorder {
		return overSocket(c, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/backup", nil))
	}
	const most = 4
	codes := make(chan int, most)
	for range most {
		go func() { codes <- ask().Code }()
		<-a.begun
	}
	if w := ask(); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "4 backups are being read already") {
		t.Errorf("one more: got %d %s, want 503", w.Code, w.Body)
	}
	close(a.end)
	for range most {
		if code := <-codes; code != http.StatusOK {
			t.Errorf("got %d, want 200", code)
		}
	}
	go func() { <-a.begun }()
	if w := ask(); w.Code != http.StatusOK {
		t.Errorf("after them: got %d %s, want 200", w.Code, w.Body)
	}
}
