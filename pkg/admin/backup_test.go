package admin_test

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	err  error // of Backup, behind the text
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

func serveArchive(a admin.Archive, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	admin.Handler(admin.Config{JSON: http.NotFoundHandler(), Explainer: &admin.Explainer{}, Health: &admin.Health{}, Archive: a}).ServeHTTP(w, r)
	return w
}

// Only who is on the machine, and speaks for nobody else, gets a copy or puts one back.
func TestWhoMayCopy(t *testing.T) {
	for _, test := range []struct {
		name, remote, host, header string
		want                       int
	}{
		{"this machine", "127.0.0.1:4711", "127.0.0.1:8080", "", 200},
		{"by name", "127.0.0.1:4711", "localhost:8080", "", 200},
		{"by name without a port", "127.0.0.1:4711", "localhost", "", 200},
		{"IPv6", "[::1]:4711", "[::1]:8080", "", 200},
		{"IPv4 in IPv6", "[::ffff:127.0.0.1]:4711", "127.0.0.1:8080", "", 200},
		{"another machine", "192.0.2.1:4711", "127.0.0.1:8080", "", 403},
		{"another machine's IPv6", "[2001:db8::1]:4711", "[::1]:8080", "", 403},
		{"a name for this machine", "127.0.0.1:4711", "evil.example:8080", "", 403},
		{"a proxy", "127.0.0.1:4711", "127.0.0.1:8080", "X-Forwarded-For", 403},
		{"a proxy by the standard", "127.0.0.1:4711", "127.0.0.1:8080", "Forwarded", 403},
		{"a page in a browser", "127.0.0.1:4711", "127.0.0.1:8080", "Origin", 403},
		{"nobody known", "@", "127.0.0.1:8080", "", 403},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, r := range []*http.Request{
				httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/backup", nil),
				httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/restore", strings.NewReader("all")),
			} {
				r.RemoteAddr, r.Host = test.remote, test.host
				r.Header.Set("Content-Type", admin.BackupType)
				if test.header != "" {
					r.Header.Set(test.header, "for=192.0.2.1")
				}
				a := &copier{text: "all"}
				w := serveArchive(a, r)
				if w.Code != test.want || (a.got != "") != (test.want == 200 && r.Method == http.MethodPost) {
					t.Errorf("%s: %d %q, restored %q; want %d", r.URL.Path, w.Code, w.Body, a.got, test.want)
				}
			}
		})
	}
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
		{"one that fails at once", "GET", "/v1/backup", "", "", refusing{broken}, 503, "the disk is gone\n", ""},
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
			r.RemoteAddr, r.Host = "127.0.0.1:4711", "127.0.0.1:8080"
			r.Header.Set("Content-Type", test.kind)
			w := serveArchive(test.archive, r)
			if w.Code != test.code || !strings.Contains(w.Body.String(), test.want) {
				t.Errorf("%d %q, want %d %q", w.Code, w.Body, test.code, test.want)
			}
			if got := w.Result().Trailer.Get(admin.BackupError); got != test.trailer {
				t.Errorf("trailer %q, want %q", got, test.trailer)
			}
		})
	}
}

// refusing is an archive that can do nothing.
type refusing struct{ err error }

func (r refusing) Backup(io.Writer) (int64, error)          { return 0, r.err }
func (r refusing) Restore(context.Context, io.Reader) error { return r.err }
