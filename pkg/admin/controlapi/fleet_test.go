package controlapi_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/admin"
	"github.com/ratelimit/ratelimit/pkg/admin/controlapi"
	"github.com/ratelimit/ratelimit/pkg/api"
)

func TestFleet(t *testing.T) {
	s := newServer(t, nil)
	w := s.as(t, admin.RoleRead, http.MethodGet, "/v1/fleet", "")
	var got *api.Fleet
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusOK {
		t.Fatalf("%d %s %v", w.Code, w.Body, err)
	}
	if diff := cmp.Diff(someFleet{}.State(t.Context()), got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if w := s.as(t, admin.RoleRead, http.MethodGet, "/v1/fleet?size=1", ""); w.Code != http.StatusBadRequest {
		t.Errorf("with a parameter: %d %s", w.Code, w.Body)
	}
}

// The parameter fleet asks all replicas, with the other parameters as they are.
func TestTopOfFleet(t *testing.T) {
	s := newServer(t, nil)
	row := func(namespace, by, resource api.Name, limit string, n int64) []api.TopRow {
		return []api.TopRow{{Namespace: namespace, Entity: by, Resource: resource, Limit: limit, Decisions: n, Tokens: 1500}}
	}
	for query, want := range map[string]api.Top{
		"?fleet=true": {By: api.TopDenied, Seconds: 60, Fleet: true, Items: row("", "denied", "", "", 20)},
		"?fleet=true&by=shadow&size=3&namespace=n&resource=r&limit=l": {By: api.TopShadow, Seconds: 60, Fleet: true, Items: row("n", "shadow", "r", "l", 3)},
		"?fleet=false": {By: api.TopDenied, Seconds: 60, Items: []api.TopRow{}},
	} {
		w := s.as(t, admin.RoleRead, http.MethodGet, "/v1/top"+query, "")
		var got api.Top
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusOK {
			t.Fatalf("%s: %d %s %v", query, w.Code, w.Body, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", query, diff)
		}
	}
}

// A service that knows no other replicas refuses the parameter fleet.
func TestTopWithoutFleet(t *testing.T) {
	a, err := controlapi.New(controlapi.Config{Now: time.Now, Activity: controlapi.Activity{Denied: controlapi.NewTopCounter()}})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range a.Routes() {
		if r.Pattern == "GET /v1/top" {
			w := httptest.NewRecorder()
			r.Handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/top?fleet=true", http.NoBody))
			if p := problemOf(t, w); p.Type != api.Unsupported {
				t.Errorf("got %v", p)
			}
		}
	}
}
