package controlapi_test

import (
	"net/http"
	"testing"

	"github.com/ratelimit/ratelimit/pkg/api"
)

// A resource may be the path / of a request, and an entity too: each can be limited and disabled.
func TestASlashHasLimits(t *testing.T) {
	s := newServer(t, nil)
	for _, path := range []string{"/limits/resources/%2F", "/limits/entities/%2F/%2F"} {
		s.must(t, http.StatusCreated, http.MethodPut, "/v1/namespaces/default"+path, `{"limits": {"l": "5/minute"}}`)
		var l api.Limits
		get(t, s, "/v1/namespaces/default"+path, &l)
		if *l.Resource != "/" || l.Limits["l"].Rate != "5/minute" {
			t.Errorf("%s: %+v", path, l)
		}
	}
	for _, path := range []string{"/disabled/resources/%2F", "/disabled/entities/%2F"} {
		s.must(t, http.StatusOK, http.MethodPut, "/v1/namespaces/default"+path, "")
		var d api.Disabled
		get(t, s, "/v1/namespaces/default"+path, &d)
		if !d.Disabled {
			t.Errorf("%s: %+v", path, d)
		}
	}
}
