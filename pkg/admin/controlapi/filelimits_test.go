package controlapi_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/admin/controlapi"
	"github.com/ratelimit/ratelimit/pkg/embedded"
)

// Without a limit in the file the list is empty, and not null: the console spreads it.
func TestNoFileLimits(t *testing.T) {
	store := embedded.New(embedded.Config{})
	defer func() { _ = store.Close(context.WithoutCancel(t.Context())) }()
	none := func() *controlapi.File { return new(controlapi.File) }
	a, err := controlapi.New(controlapi.Config{Store: store, Now: time.Now, Sources: controlapi.Sources{File: none}})
	if err != nil {
		t.Fatal(err)
	}
	var mux http.ServeMux
	for _, route := range a.Routes() {
		mux.Handle(route.Pattern, route.Handler)
	}
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/namespaces/default/limits/file", http.NoBody))
	if got := strings.Join(strings.Fields(w.Body.String()), ""); w.Code != http.StatusOK || got != `{"items":[]}` {
		t.Errorf("%d %s, want an empty list", w.Code, got)
	}
}
