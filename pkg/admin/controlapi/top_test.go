package controlapi_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/admin"
	"github.com/ratelimit/ratelimit/pkg/admin/controlapi"
	"github.com/ratelimit/ratelimit/pkg/api"
)

func TestTop(t *testing.T) {
	s := newServer(t, nil)
	now := time.Now()
	for i, k := range []controlapi.TopKey{
		{Namespace: "default", Entity: "key/a", Resource: "gpt-4", Limit: "rpm"},
		{Namespace: "default", Entity: "key/a", Resource: "gpt-4", Limit: "tpm"},
		{Namespace: "other", Entity: "key/\xff", Resource: "gpt-3", Limit: "rpm"},
	} {
		for range i + 1 {
			s.denied.Add(now, k, 1500)
		}
	}
	row := func(namespace, entity, resource api.Name, limit string, decisions int64) api.TopRow {
		return api.TopRow{Namespace: namespace, Entity: entity, Resource: resource, Limit: limit, Decisions: decisions, Tokens: api.Tokens(1500 * decisions)}
	}
	first, second, third := row("other", "key/\xff", "gpt-3", "rpm", 3), row("default", "key/a", "gpt-4", "tpm", 2), row("default", "key/a", "gpt-4", "rpm", 1)
	for query, want := range map[string][]api.TopRow{
		"":                                {first, second, third},
		"?by=denied&size=2":               {first, second},
		"?namespace=default":              {second, third},
		"?resource=gpt-4&limit=rpm":       {third},
		"?limit=none":                     {},
		"?by=busiest":                     {},
		"?by=denied&namespace=&resource=": {first, second, third},
	} {
		w := s.as(t, admin.RoleRead, http.MethodGet, "/v1/top"+query, "")
		var got api.Top
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusOK || got.Seconds != 60 {
			t.Fatalf("%s: %d %s %v", query, w.Code, w.Body, err)
		}
		if diff := cmp.Diff(want, got.Items); diff != "" {
			t.Errorf("%s (-want +got)\n%s", query, diff)
		}
	}
}

func TestTopRefuses(t *testing.T) {
	s := newServer(t, nil)
	for query, want := range map[string]string{
		"?by=tokens":    `the parameter by is "tokens"; it must be denied, busiest or shadow`,
		"?size=0":       `the parameter size is "0"; it must be 1 to 1000`,
		"?size=many":    "it must be 1 to 1000",
		"?tenant=key/a": `unknown parameter "tenant"`,
		"?fleet=all":    "the parameter fleet",
	} {
		w := s.must(t, http.StatusBadRequest, http.MethodGet, "/v1/top"+query, "")
		if p := problemOf(t, w); p.Type != api.Invalid || !strings.Contains(p.Detail, want) {
			t.Errorf("%s: got %v, want %s", query, p, want)
		}
	}
}

func TestDecisions(t *testing.T) {
	s := newServer(t, nil)
	var got api.Decisions
	w := s.as(t, admin.RoleRead, http.MethodGet, "/v1/decisions", "")
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	want := api.Decisions{Since: time.Unix(1, 0).UTC(), Time: got.Time, Results: map[string]int64{"allowed": 7, "denied": 0}, Denials: map[string]int64{"disabled": 2}}
	if diff := cmp.Diff(want, got); diff != "" || time.Since(got.Time) > time.Minute {
		t.Errorf("at %v (-want +got)\n%s", got.Time, diff)
	}
}

// A service that does not count its decisions reports that.
func TestNoActivity(t *testing.T) {
	a, err := controlapi.New(controlapi.Config{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	var mux http.ServeMux
	for _, r := range a.Routes() {
		mux.Handle(r.Pattern, r.Handler)
	}
	for _, path := range []string{"/v1/top", "/v1/top?by=busiest", "/v1/decisions", "/v1/fleet"} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody))
		if p := problemOf(t, w); p.Type != api.Unsupported || p.Status != http.StatusNotImplemented {
			t.Errorf("%s: got %v", path, p)
		}
	}
}
