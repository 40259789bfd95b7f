package admin_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/ratelimit/ratelimit/pkg/admin"
)

// Each name reaches its handler as it is, also one that is a slash.
func TestMuxTakesAnyName(t *testing.T) {
	var mux admin.Mux
	mux.Handle("GET /of/{entity}/{resource}", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "%q %q", r.PathValue("entity"), r.PathValue("resource"))
	}))
	names := []string{"/", "//", "///", "/a", "a/", "a//b", "a", "%2F", "%", ".%2E", "k?#", "k\xff", "\x00"}
	for _, entity := range names {
		for _, resource := range names {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/of/"+url.PathEscape(entity)+"/"+url.PathEscape(resource)+"?x=1", http.NoBody)
			w := httptest.NewRecorder()
			mux.ServeHTTP(w, r)
			if want := fmt.Sprintf("%q %q", entity, resource); w.Code != http.StatusOK || w.Body.String() != want {
				t.Errorf("got %d %s, want %s", w.Code, w.Body, want)
			}
			if _, pattern := mux.Handler(r); pattern == "" {
				t.Errorf("%q %q have no pattern", entity, resource)
			}
		}
	}
	for _, path := range []string{"/of/a/", "/of/a", "/of/a/b/", "/of/a/b/%2F"} {
		if _, pattern := mux.Handler(httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody)); pattern != "" {
			t.Errorf("%s has the pattern %s", path, pattern)
		}
	}
}
