package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/internal/command"
)

// A purge that takes several requests is one command. One that is broken off says that it is, and
// the next goes on.
func TestPurgeGoesOn(t *testing.T) {
	answers := []string{`{"deleted":7,"done":false}`, "", `{"deleted":3,"done":false}`, `{"deleted":0,"done":true}`}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.URL.Path != "/v1/namespaces/tenant/purge" || len(answers) == 0 {
			t.Errorf("unexpected %s %s", r.Method, r.URL.Path)
			return
		}
		answer := answers[0]
		answers = answers[1:]
		w.Header().Set("Content-Type", "application/json")
		if answer == "" {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusServiceUnavailable)
			answer = `{"type":"urn:ratelimit:problem:unavailable","status":503,"detail":"throttled"}`
		}
		_, _ = fmt.Fprint(w, answer)
	}))
	defer server.Close()
	purge := []string{"purge", "namespace", "tenant", "--yes", "--server", server.URL}
	code, stdout, stderr := output(t, purge...)
	if want := "namespace tenant is purged in part, and the same command goes on: throttled"; code != command.ExitFailure || stdout != "" || !strings.Contains(stderr, want) {
		t.Errorf("broken off: exit code %d, %q, %q; want %q", code, stdout, stderr, want)
	}
	if code, stdout, stderr := output(t, purge...); code != 0 || stdout != "namespace tenant purged, 3 records deleted\n" {
		t.Errorf("the next: exit code %d, %q, %q", code, stdout, stderr)
	}
	if len(answers) > 0 {
		t.Errorf("%d requests were not made", len(answers))
	}
}
