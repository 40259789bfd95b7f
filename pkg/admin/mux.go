package admin

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

// Mux is an http.ServeMux for paths with names in them: its wildcards match a name that is "/", as %2F, too. That of
// net/http takes such a segment for the end of a path. A name of slashes alone has one more on the way through it.
type Mux struct{ mux http.ServeMux }

var wildcard = regexp.MustCompile(`\{(\w+)\}`)

// Handle adds the handler of a pattern.
func (m *Mux) Handle(pattern string, h http.Handler) {
	names := wildcard.FindAllStringSubmatch(pattern, -1)
	m.mux.Handle(pattern, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, name := range names {
			if value := r.PathValue(name[1]); value != "" && strings.Trim(value, "/") == "" {
				r.SetPathValue(name[1], value[1:])
			}
		}
		h.ServeHTTP(w, r)
	}))
}

// Handler returns the handler for a request, and its pattern; "" = there is none.
func (m *Mux) Handler(r *http.Request) (h http.Handler, pattern string) {
	return m.mux.Handler(routed(r))
}

// ServeHTTP implements http.Handler.
func (m *Mux) ServeHTTP(w http.ResponseWriter, r *http.Request) { m.mux.ServeHTTP(w, routed(r)) }

// routed returns a request with one more slash in each segment of slashes alone.
func routed(r *http.Request) *http.Request {
	segments, found := strings.Split(r.URL.EscapedPath(), "/"), false
	for i, s := range segments {
		if name, err := url.PathUnescape(s); err == nil && name != "" && strings.Trim(name, "/") == "" {
			segments[i], found = s+"%2F", true
		}
	}
	if !found {
		return r
	}
	out, at := *r, *r.URL
	at.RawPath = strings.Join(segments, "/")
	at.Path, _ = url.PathUnescape(at.RawPath) // it was escaped
	out.URL = &at
	return &out
}
