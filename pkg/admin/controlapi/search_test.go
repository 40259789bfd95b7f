package controlapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/ratelimit/ratelimit/pkg/admin/controlapi"
	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// fileInForce is a configuration with limits at each place.
func fileInForce(t *testing.T) *controlapi.File {
	t.Helper()
	limits, err := limiter.NewLimits(limiter.PerDay("l", 5))
	if err != nil {
		t.Fatal(err)
	}
	by := map[string]*limiter.Limits{"r": limits}
	rules, problems := descriptor.Compile([]descriptor.DomainSpec{{Domain: "shop", Rules: []descriptor.RuleSpec{{
		Name: "uploads", Match: []descriptor.MatchSpec{{Key: "key", Value: "*"}},
		Takes: []descriptor.TakeSpec{{Entity: "key/{key}", Resource: "up", Limits: limits, Consume: []descriptor.ConsumeSpec{{Limit: "l", Constant: 1000}}}},
	}}}}, nil)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return &controlapi.File{Rules: rules, Static: limiter.Static{
		System: limits, Resources: by, Plans: map[string]*limiter.Limits{"pro": limits}, Kinds: []limiter.Kind{{Prefix: "user/", Limits: by}},
		Entities: map[string]limiter.StaticEntity{"org/acme": {Limits: by}, "team/a": {Parent: "org/acme", Cascade: true}, "key/k-2": {Parent: "team/a"}},
	}}
}

// get reads the answer of a path.
func get[V any](t *testing.T, s *server, path string, into *V) {
	t.Helper()
	*into = *new(V)
	if err := json.Unmarshal(s.must(t, http.StatusOK, http.MethodGet, path, "").Body.Bytes(), into); err != nil {
		t.Fatal(err)
	}
}

// A search finds an entity behind a prefix of the rules, in the file, in use, and by its name.
func TestSearch(t *testing.T) {
	s := newServer(t, nil)
	s.must(t, http.StatusCreated, http.MethodPut, "/v1/namespaces/default/entities/key%2Fk-1", `{"parent": "org/acme", "cascade": true, "name": "Search team"}`)
	for i := range 3 {
		s.must(t, http.StatusCreated, http.MethodPut, fmt.Sprintf("/v1/namespaces/default/entities/user%%2Fu-%d", i), `{}`)
	}
	for _, tt := range []struct {
		text string
		want []string
	}{
		{"k-1", []string{"key/k-1"}},
		{"acme", []string{"org/acme"}}, // of the file alone
		{"Search", []string{"key/k-1"}},
		{"u-", []string{"user/u-0", "user/u-1", "user/u-2"}},
		{"nobody", nil},
	} {
		var found api.Search
		get(t, s, "/v1/namespaces/default/search?text="+tt.text, &found)
		ids := make([]string, 0, len(found.Items))
		for _, f := range found.Items {
			ids = append(ids, string(f.ID))
		}
		if !slices.Equal(ids, tt.want) || !found.Complete {
			t.Errorf("%s: found %q, complete %v; want %q", tt.text, ids, found.Complete, tt.want)
		}
	}
	var two api.Search
	if get(t, s, "/v1/namespaces/default/search?size=2&text=u-", &two); len(two.Items) != 2 || two.Complete {
		t.Errorf("%d items, complete %v; want 2, and that there may be more", len(two.Items), two.Complete)
	}
	for _, bad := range []string{"", "?text=", "?text=a&size=0", "?text=a&size=101"} {
		s.must(t, http.StatusBadRequest, http.MethodGet, "/v1/namespaces/default/search"+bad, "")
	}
}

// A family has the parents of the store before those of the file, and the children of both.
func TestFamily(t *testing.T) {
	s := newServer(t, nil)
	s.must(t, http.StatusCreated, http.MethodPut, "/v1/namespaces/default/entities/key%2Fk-1", `{"parent": "team/a", "cascade": true, "metadata": {"owner": "ada"}}`)
	var f api.Family
	get(t, s, "/v1/namespaces/default/entities/key%2Fk-1/family", &f)
	if len(f.Chain) != 3 || f.Chain[0].ID != "key/k-1" || !f.Chain[0].Stored || !f.Chain[0].Cascade || f.Chain[1].ID != "team/a" || !f.Chain[1].File || f.Chain[2].ID != "org/acme" {
		t.Errorf("the chain is %+v", f.Chain)
	}
	get(t, s, "/v1/namespaces/default/entities/team%2Fa/family", &f)
	if !slices.Equal(f.Children, []api.Name{"key/k-1", "key/k-2"}) || f.MoreChildren {
		t.Errorf("the children are %q, more %v; want one of the store and one of the file", f.Children, f.MoreChildren)
	}
}

// The list of the file has the limits of each place, in pages, and those with a text.
func TestFileLimits(t *testing.T) {
	s := newServer(t, nil)
	var list api.List[api.FileLimits]
	var places []api.Place
	for path := "/v1/namespaces/default/limits/file?size=4"; path != ""; {
		get(t, s, path, &list)
		for _, l := range list.Items {
			places = append(places, l.Place)
		}
		if path = ""; list.Next != "" {
			path = "/v1/namespaces/default/limits/file?size=4&after=" + list.Next
		}
	}
	want := []api.Place{api.PlaceSystem, api.PlaceResource, api.PlaceKind, api.PlacePlan, api.PlaceRule, api.PlaceEntity}
	if !slices.Equal(places, want) {
		t.Errorf("the places are %q, want %q", places, want)
	}
	get(t, s, "/v1/namespaces/default/limits/file?search=uploads", &list)
	if len(list.Items) != 1 || list.Items[0].Name != "uploads" || list.Items[0].Limits["l"].Rate != "5/day" || named(list.Items[0].Entity) != "key/{key}" {
		t.Errorf("the rule uploads is %+v", list.Items)
	}
	s.must(t, http.StatusBadRequest, http.MethodGet, "/v1/namespaces/default/limits/file?after=x", "")
}

func named(n *api.Name) string {
	if n == nil {
		return ""
	}
	return string(*n)
}
