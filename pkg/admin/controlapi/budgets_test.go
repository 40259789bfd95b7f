package controlapi_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/admin"
	"github.com/ratelimit/ratelimit/pkg/api"
)

// Budgets are stored with their limits. A change of the budgets alone changes the etag, and equal
// budgets have the same etag.
func TestBudgetsOfLimits(t *testing.T) {
	s := newServer(t, nil)
	path, etags := limits+"/entities/e/_default_", make(map[string]string)
	for _, body := range []string{
		`{"limits":{"rpm":"5/day"}}`,
		`{"limits":{"rpm":{"rate":"5/day","budget":{"day":4,"month":50}}}}`,
		`{"limits":{"rpm":{"rate":"5/day","budget":{"day":5,"month":50}}}}`,
		`{"limits":{"rpm":{"rate":"5/day","budget":{"month":50,"day":4}}}}`,
	} {
		var change api.Change[api.Limits]
		var want, got api.Limits
		if err := json.Unmarshal([]byte(body), &want); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(s.as(t, admin.RoleAdminister, http.MethodPut, path, body).Body.Bytes(), &change); err != nil || change.After == nil {
			t.Fatalf("%s: %+v, %v", body, change, err)
		}
		if err := json.Unmarshal(s.as(t, admin.RoleRead, http.MethodGet, path, "").Body.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.Limits, got.Limits); diff != "" || got.ETag != change.After.ETag {
			t.Errorf("%s: etags %s and %s (-want +got):\n%s", body, got.ETag, change.After.ETag, diff)
		}
		content, _ := json.Marshal(got.Limits)
		if of, known := etags[got.ETag]; known && of != string(content) {
			t.Errorf("%s and %s have the same etag", of, content)
		}
		etags[got.ETag] = string(content)
	}
	if len(etags) != 3 {
		t.Errorf("%d etags, want 3: %v", len(etags), etags)
	}
}
