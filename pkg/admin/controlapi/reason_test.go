package controlapi_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/api"
)

// Each change has its reason in the audit. One that is no line of text is refused, and the change
// is not made.
func TestReasons(t *testing.T) {
	s := newServer(t, nil)
	const ns = "/v1/namespaces/default"
	s.use(t, "e")
	changes := []struct{ method, target, body, action string }{
		{"PUT", ns + "/entities/e", `{"name": "n"}`, "entity.put"},
		{"PUT", ns + "/limits/resources/r", `{"limits": {"l": "1/day"}}`, "limits.put"},
		{"DELETE", ns + "/limits/resources/r", "", "limits.delete"},
		{"POST", ns + "/buckets/reset", `{"entity": "e", "resource": "r"}`, "bucket.reset"},
		{"PUT", ns + "/disabled/entities/e", "", "entity.disable"},
		{"DELETE", ns + "/disabled/entities/e", "", "entity.enable"},
		{"DELETE", ns + "/entities/e", "", "entity.delete"},
		{"DELETE", ns, "", "namespace.delete"},
		{"POST", ns + "/recover", "", "namespace.recover"},
	}
	before := s.generation(t)
	for _, text := range []string{"two\nlines", strings.Repeat("a", 257), "a\x1bb"} {
		for _, c := range changes {
			w := s.do(t, c.method, c.target+"?reason="+url.QueryEscape(text), c.body)
			if p := problemOf(t, w); p.Type != api.Invalid || !strings.Contains(p.Detail, "reason") {
				t.Errorf("%s %s with %q: %+v", c.method, c.target, text, p)
			}
		}
	}
	if now := s.generation(t); now != before {
		t.Errorf("generation %d after changes that were refused, and %d before", now, before)
	}
	const reason = `überzahlt & "zurück", ticket 7`
	for _, c := range changes {
		if w := s.do(t, c.method, c.target+"?reason="+url.QueryEscape(reason), c.body); w.Code/100 != 2 {
			t.Fatalf("%s %s: %d %s", c.method, c.target, w.Code, w.Body)
		}
		var page api.List[api.AuditEvent]
		w := s.must(t, http.StatusOK, http.MethodGet, ns+"/audit?size=1", "")
		if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil || len(page.Items) != 1 || page.Items[0].Action != c.action || page.Items[0].Reason != reason {
			t.Errorf("%s %s: the event is %+v, %v; want %s with the reason", c.method, c.target, page.Items, err, c.action)
		}
	}
	s.must(t, http.StatusBadRequest, http.MethodGet, ns+"/entities?reason=x", "")
}

// A disabled subject says since when, by whom and why, in the list and in its own record.
func TestDisabledSays(t *testing.T) {
	s := newServer(t, nil)
	const ns = "/v1/namespaces/default"
	began := time.Now().Truncate(time.Millisecond)
	s.must(t, http.StatusOK, http.MethodPut, ns+"/disabled/resources/r?reason=abuse", "")
	var list api.List[api.Disabled]
	var one api.Disabled
	for target, into := range map[string]any{ns + "/disabled": &list, ns + "/disabled/resources/r": &one} {
		w := s.must(t, http.StatusOK, http.MethodGet, target, "")
		if err := json.Unmarshal(w.Body.Bytes(), into); err != nil {
			t.Fatal(err)
		}
	}
	for _, got := range append(list.Items, one) {
		if !got.Disabled || got.By != "administer" || got.Reason != "abuse" || got.Since.Before(began) || got.Since.After(time.Now()) {
			t.Errorf("got %+v", got)
		}
	}
	if len(list.Items) != 1 {
		t.Errorf("%d items, want 1", len(list.Items))
	}
}
