package controlapi_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/pkg/admin"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// The parameter allowNew allows names that are new, of each kind or of some.
func TestNewNamesNeedAParameter(t *testing.T) {
	s := newServer(t, nil)
	const ns = "/v1/namespaces/default"
	for _, test := range []struct {
		target, body string
		code         int
		want         string
	}{
		{ns + "/entities/key%2Fk-9?allowNew=false", `{"parent": "org/acmee"}`, 400, "did you mean org/acme?"},
		{ns + "/entities/key%2Fk-9?allowNew=entity,plan", `{"parent": "org/acmee"}`, 400, "did you mean org/acme?"},
		{ns + "/entities/key%2Fk-9?allowNew=parents", `{"parent": "org/acmee"}`, 400, "it must be true, false, or a list of namespace, entity, parent, resource, limit, plan"},
		{ns + "/entities/key%2Fk-9?allowNew=plan,parent", `{"parent": "org/acmee"}`, 201, "org/acmee"},
		{ns + "/entities/key%2Fk-9?allowNew=false", `{"parent": "org/acmee", "name": "n"}`, 200, "org/acmee"}, // as it is stored
		{ns + "/entities/org%2Fx?allowNew=false", `{"parent": "org/acme"}`, 201, "org/acme"},
		{"/v1/namespaces/defaultt/disabled/namespace?allowNew=parent", "", 400, "namespace defaultt was never in use; did you mean default?"},
		{"/v1/namespaces/defaultt/disabled/namespace?allowNew=namespace", "", 200, "defaultt"},
		{ns + "/disabled/entities/team%2Fa?allowNew=false", "", 200, "team/a"},
		{ns + "/disabled/entities/team%2Fb?allowNew=false", "", 400, "entity team/b is neither stored nor in the configuration nor in use"},
		{ns + "/limits/resources/upp?allowNew=false", `{"limits": {"l": "5/day"}}`, 400, "no rule takes from resource upp in namespace default; did you mean up?"},
		{ns + "/limits/resources/up?allowNew=false", `{"limits": {"l": "5/day"}}`, 201, "5/day"},
		{ns + "/limits/entities/keys%2Fk-7/up?allowNew=false", `{"limits": {"l": "5/day"}}`, 400, "entity keys/k-7 is new, and no rule takes from keys/…; did you mean key/k-7?"},
		{ns + "/limits/entities/keys%2Fk-7/up?allowNew=entity", `{"limits": {"l": "5/day"}}`, 201, "5/day"},
		{ns + "/limits/entities/key%2Fk-7/up?allowNew=false", `{"limits": {"l": "5/day"}}`, 201, "5/day"}, // keys/k-7 is no correction
		{ns + "/limits/entities/orgs%2Fnew/up?allowNew=false", `{"limits": {"l": "5/day"}}`, 201, "5/day"},
		{ns + "/limits/resources/r?allowNew=false", `{"limits": {"l": "5/day"}}`, 201, "5/day"}, // of the file
	} {
		got := s.as(t, admin.RoleAdminister, http.MethodPut, test.target, test.body, "Content-Type", "application/json")
		if got.Code != test.code || !strings.Contains(got.Body.String(), test.want) && !strings.Contains(test.target, test.want) {
			t.Errorf("%s %s: %d %s; want %d %s", test.target, test.body, got.Code, got.Body, test.code, test.want)
		}
	}
}

// A name as lists cut a long one is no new name: limits of it would count for no request.
func TestCutNamesAreNoNewNames(t *testing.T) {
	s := newServer(t, nil)
	for i, test := range []struct{ target, body string }{
		{"entities/%s", `{}`},
		{"disabled/entities/%s", ""},
		{"limits/entities/%s/r", `{"limits": {"l": "5/day"}}`},
		{"limits/resources/%s", `{"limits": {"l": "5/day"}}`},
	} {
		target := "/v1/namespaces/default/" + fmt.Sprintf(test.target, url.PathEscape(limiter.ShortName("key/"+strings.Repeat("k", 300+i))))
		const want = "a name of more than 256 bytes as lists cut it"
		got := s.as(t, admin.RoleAdminister, http.MethodPut, target+"?allowNew=false", test.body, "Content-Type", "application/json")
		if got.Code != http.StatusBadRequest || !strings.Contains(got.Body.String(), want) {
			t.Errorf("%s: %d %s; want 400 %s", test.target, got.Code, got.Body, want)
		}
		if got := s.as(t, admin.RoleAdminister, http.MethodPut, target+"?allowNew=true", test.body, "Content-Type", "application/json"); got.Code/100 != 2 {
			t.Errorf("%s with allowNew: %d %s", test.target, got.Code, got.Body)
		}
	}
}
