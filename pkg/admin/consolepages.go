package admin

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"io/fs"
	"net/http"
	"path"
	"strings"
)

//go:embed console
var files embed.FS

// policy is the Content-Security-Policy of every file. The page loads nothing from another host,
// has no inline script or style, and cannot be framed.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// ConsolePrefix is the path of the page's files. The page itself is at /.
const ConsolePrefix = "/console/"

// file is a file of the page.
type file struct {
	kind, etag string
	content    []byte
}

// ConsolePages answers requests for the page and its files, for any caller.
type ConsolePages struct {
	files map[string]file // by path of the URL
}

// NewConsole returns the handler.
func NewConsole() (*ConsolePages, error) {
	h := &ConsolePages{files: make(map[string]file)}
	err := fs.WalkDir(files, "console", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		hash := sha256.Sum256(content)
		at := ConsolePrefix + strings.TrimPrefix(name, "console/")
		if path.Base(name) == "index.html" {
			at = "/"
		}
		h.files[at] = file{pageKind(name), `"` + base64.RawURLEncoding.EncodeToString(hash[:12]) + `"`, content}
		return nil
	})
	return h, err
}

// pageKind returns the media type of a file. It is the same on every machine.
func pageKind(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	default:
		return "application/octet-stream"
	}
}

// Has reports whether the handler answers a request: it answers those for the page, and all below
// [ConsolePrefix], where a file that is not there is 404 for any caller.
func (*ConsolePages) Has(r *http.Request) bool {
	below := r.URL.Path == "/" || strings.HasPrefix(r.URL.Path, ConsolePrefix)
	return below && (r.Method == http.MethodGet || r.Method == http.MethodHead)
}

// ServeHTTP implements http.Handler.
func (h *ConsolePages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f, found := h.files[r.URL.Path]
	if !found {
		http.NotFound(w, r)
		return
	}
	for name, value := range map[string]string{
		"Content-Type":                 f.kind,
		"Content-Security-Policy":      policy,
		"X-Content-Type-Options":       "nosniff",
		"Referrer-Policy":              "no-referrer",
		"Cross-Origin-Opener-Policy":   "same-origin",
		"Cross-Origin-Resource-Policy": "same-origin",
		"Cache-Control":                "no-cache",
		"ETag":                         f.etag,
	} {
		w.Header().Set(name, value)
	}
	if r.Header.Get("If-None-Match") == f.etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = w.Write(f.content) // an error says that the client has gone
}
