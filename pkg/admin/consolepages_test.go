package admin_test

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/pkg/admin"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

func get(t *testing.T, h http.Handler, path string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, http.NoBody)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func newHandler(t *testing.T) *admin.ConsolePages {
	t.Helper()
	h, err := admin.NewConsole()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// reference finds the files that a file names.
var reference = regexp.MustCompile(`(?:src|href)="([^"#]+)"|from "(\./[^"]+)"`)

// All files of the page are there, with their types and a policy that allows only them. None has an
// inline script, style or handler.
func TestFiles(t *testing.T) {
	h := newHandler(t)
	todo, seen := []string{"/"}, map[string]bool{"/": true}
	for len(todo) > 0 {
		path := todo[0]
		todo = todo[1:]
		w := get(t, h, path)
		text, policy := w.Body.String(), w.Header().Get("Content-Security-Policy")
		if w.Code != http.StatusOK || !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
			t.Errorf("%s: %d, policy %s", path, w.Code, policy)
		}
		if kind := w.Header().Get("Content-Type"); kind == "" || w.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: the header is %v", path, w.Header())
		}
		for _, bad := range []string{"innerHTML", "eval(", "<style", "style=", " onclick=", "http://", "https://", "document.cookie", "localStorage"} {
			if path == "/console/uplot.js" && strings.HasSuffix(bad, "://") {
				continue // its comments name pages
			}
			if strings.Contains(strings.ReplaceAll(text, "http://www.w3.org/2000/svg", ""), bad) {
				t.Errorf("%s has %s", path, bad)
			}
		}
		for _, found := range reference.FindAllStringSubmatch(text, -1) {
			next := found[1]
			if found[2] != "" {
				next = admin.ConsolePrefix + strings.TrimPrefix(found[2], "./")
			}
			if !seen[next] {
				seen[next] = true
				todo = append(todo, next)
			}
		}
	}
	if len(seen) < 12 {
		t.Errorf("the page has %v only", seen)
	}
}

// Requests for other paths, and with other methods, are not for the page. A file that is not there is 404 for any
// caller: so the page finds out whether it is served by a console of a command.
func TestHas(t *testing.T) {
	h := newHandler(t)
	for _, tt := range []struct {
		method, path string
		want         bool
	}{
		{http.MethodGet, "/", true},
		{http.MethodHead, "/", true},
		{http.MethodGet, "/console/main.js", true},
		{http.MethodPost, "/", false},
		{http.MethodPut, "/console/main.js", false},
		{http.MethodGet, "/console/", true},
		{http.MethodGet, "/console/session", true},
		{http.MethodPost, "/console/login", false},
		{http.MethodGet, "/consoles", false},
		{http.MethodGet, "/v1/status", false},
	} {
		if got := h.Has(httptest.NewRequest(tt.method, tt.path, http.NoBody)); got != tt.want {
			t.Errorf("%s %s: %t", tt.method, tt.path, got)
		}
	}
	for _, path := range []string{"/console/", "/console/session", "/console/index.html", "/console/../console.go"} {
		if w := get(t, h, path); w.Code != http.StatusNotFound {
			t.Errorf("%s, which is no file: %d", path, w.Code)
		}
	}
}

// A browser with a current file gets an answer without content, and asks again after each new
// version.
func TestCache(t *testing.T) {
	h := newHandler(t)
	first := get(t, h, "/console/main.js")
	if first.Header().Get("Cache-Control") != "no-cache" {
		t.Errorf("Cache-Control %s", first.Header().Get("Cache-Control"))
	}
	if w := get(t, h, "/console/main.js", "If-None-Match", first.Header().Get("ETag")); w.Code != http.StatusNotModified || w.Body.Len() > 0 {
		t.Errorf("the same file: %d, %d bytes", w.Code, w.Body.Len())
	}
	if get(t, h, "/console/api.js").Header().Get("ETag") == first.Header().Get("ETag") {
		t.Error("two files have one ETag")
	}
}

// The page of the audit offers each action.
func TestPageOffersEachAction(t *testing.T) {
	_, list, _ := strings.Cut(get(t, newHandler(t), "/console/audit.js").Body.String(), "const actions = ")
	list, _, _ = strings.Cut(list, ";")
	offered := regexp.MustCompile(`[a-z]+\.[a-z-]+`).FindAllString(list, -1)
	slices.Sort(offered)
	if want := slices.Sorted(slices.Values(limiter.Actions())); !slices.Equal(offered, want) {
		t.Errorf("the page offers %q; want %q", offered, want)
	}
}
