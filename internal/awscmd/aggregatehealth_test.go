package awscmd

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A failed health check is reported with its reason, whose length is bounded.
func TestAnswerHealth(t *testing.T) {
	for _, tt := range []struct {
		err  error
		code int
		body string
	}{
		{nil, 200, "ok\n"},
		{errors.New("usage cannot be written"), 503, "usage cannot be written\n"},
		{errors.New(strings.Repeat("x", 1000)), 503, strings.Repeat("x", 500) + "\n"},
	} {
		w := httptest.NewRecorder()
		answerHealth(func() error { return tt.err })(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil))
		if w.Code != tt.code || w.Body.String() != tt.body {
			t.Errorf("%v: %d %q", tt.err, w.Code, w.Body.String())
		}
	}
}
