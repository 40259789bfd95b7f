package api_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/ratelimit/ratelimit/pkg/api"
)

// The client asks for all replicas where it is told to.
func TestFleet(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.String())
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"replicas":[{"id":"a","here":true}],"by":"denied","fleet":true}`))
	}))
	defer server.Close()
	c := api.NewClient(http.DefaultClient, server.URL)
	f, err := c.Fleet(t.Context())
	if err != nil || len(f.Replicas) != 1 || f.Replicas[0].ID != "a" || !f.Replicas[0].Here {
		t.Errorf("%+v, %v", f, err)
	}
	top, err := c.Top(t.Context(), api.TopOf{Fleet: true, Size: 3})
	if err != nil || !top.Fleet {
		t.Errorf("%+v, %v", top, err)
	}
	if len(asked) != 2 || asked[0] != "/v1/fleet" || asked[1] != "/v1/top?fleet=true&size=3" {
		t.Errorf("asked for %q", asked)
	}
}
