package rls_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// A text of one's own has the values of its placeholders. Of a denial without a limit they are empty or 0.
func TestBodiesHavePlaceholders(t *testing.T) {
	const own = `{"limit":"{limit}","left":{remaining},"wait":{retry_after},"status":{status},"why":"{reason}","text":"{message}","raw":"{{limit}}"}`
	rpm, rps := limits(t, limiter.PerMinute("rpm", 10)), limits(t, limiter.PerSecond("rps", 2))
	e := newEnv(t, nil)
	e.service.Reload(compile(t, []descriptor.DomainSpec{{
		Domain: "shop", Body: descriptor.Body{Form: descriptor.BodyText, Text: own, Type: "application/json"},
		Rules: []descriptor.RuleSpec{
			{Name: "closed", Match: match("user", "mallory"), Deny: &descriptor.Denial{Status: 403}},
			{Name: "banned", Match: match("user", "eve"), Deny: &descriptor.Denial{Status: 403, Body: "{status}: {reason}{limit}."}},
			{Name: "second", Match: match("user", "bob"), Takes: takes("user/{user}", "api", rps, "rps")},
			{Name: "users", Match: match("user", "*"), Takes: takes("user/{user}", "api", rpm, "rpm")},
		},
	}}), nil)
	for _, tt := range []struct {
		user string
		hits int
		want string
	}{
		{"ada", 7, ""},
		{"ada", 4, `{"limit":"rpm","left":3,"wait":6,"status":429,"why":"limit_exhausted","text":"The limit rpm is reached. Try again in 6 seconds.","raw":"{limit}"}`},
		{"ada", 11, `{"limit":"rpm","left":3,"wait":0,"status":429,"why":"exceeds_capacity","text":"The request asks for more than the limit rpm ever admits.","raw":"{limit}"}`},
		{"mallory", 1, `{"limit":"","left":0,"wait":0,"status":403,"why":"denied_by_rule","text":"The request is denied: denied_by_rule.","raw":"{limit}"}`},
		{"eve", 1, "403: denied_by_rule."},
		{"bob", 1, ""},
		{"bob", 2, `{"limit":"rps","left":1,"wait":1,"status":429,"why":"limit_exhausted","text":"The limit rps is reached. Try again in 1 second.","raw":"{limit}"}`},
	} {
		got, err := e.ask(t, fmt.Sprintf(`{"domain":"shop","descriptors":[{"entries":[{"key":"user","value":%q}],"hitsAddend":%d}]}`, tt.user, tt.hits))
		if err != nil {
			t.Fatal(err)
		}
		body := got.GetRawBody()
		if string(body) != tt.want {
			t.Errorf("%s: got %s, want %s", tt.user, body, tt.want)
		}
		if tt.user != "eve" && len(body) > 0 && !json.Valid(body) {
			t.Errorf("%s: %s is no JSON", tt.user, body)
		}
	}
}
