package controlapi_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/ratelimit/ratelimit/pkg/admin"
	"github.com/ratelimit/ratelimit/pkg/admin/controlapi"
	"github.com/ratelimit/ratelimit/pkg/api"
)

const (
	entities = "/v1/namespaces/default/entities"
	limits   = "/v1/namespaces/default/limits"
	disabled = "/v1/namespaces/default/disabled"
)

// A mistake in a request is a problem that names it, and changes nothing.
func TestRequestsThatAreRefused(t *testing.T) {
	s := newServer(t, nil)
	s.must(t, http.StatusCreated, http.MethodPut, entities+"/here", `{"name":"here"}`)
	s.must(t, http.StatusCreated, http.MethodPut, entities+"/child", `{"parent":"here"}`)
	many := make([]string, 0, 17)
	for i := range 17 {
		many = append(many, fmt.Sprintf(`"l%d":"1/day"`, i))
	}
	s.use(t, "key")
	before := s.generation(t)
	for _, test := range []struct {
		name, method, target, body string
		status                     int
		kind                       api.Kind
		detail                     string
	}{
		{"no such path", "GET", "/v1/entities", "", 404, api.NotFound, "/v1/openapi.json"},
		{"a path above the files", "GET", "/files/../../etc/passwd", "", 404, api.NotFound, "/v1/openapi.json"},
		{"no such method", "POST", entities + "/here", "{}", 405, api.Method, "DELETE, GET, HEAD, PUT"},
		{"no such entity", "GET", entities + "/none", "", 404, api.NotFound, "no entity none"},
		{"no such limits", "GET", limits + "/system", "", 404, api.NotFound, "the system"},
		{"an unknown parameter", "GET", entities + "?parnt=a", "", 400, api.Invalid, `did you mean "parent"?`},
		{"unknown parameters", "GET", entities + "?zz=1&yy=1&xx=1&ww=1&vv=1&uu=1", "", 400, api.Invalid, `unknown parameter "uu"`},
		{"a parameter twice", "GET", entities + "?parent=a&parent=b", "", 400, api.Invalid, "2 times"},
		{"a query that is none", "GET", entities + "?parent=%zz", "", 400, api.Invalid, "query"},
		{"a size", "GET", entities + "?size=1001", "", 400, api.Invalid, "1 to 1000"},
		{"a cursor", "GET", entities + "?after=x", "", 400, api.Invalid, "no cursor"},
		{"a flag", "PUT", entities + "/e?dryRun=yes", "{}", 400, api.Invalid, "true or false"},
		{"no JSON", "PUT", entities + "/e", "name: x", 400, api.Invalid, "body"},
		{"half of a body", "PUT", entities + "/e", `{"name":"x"`, 400, api.Invalid, "unexpected EOF"},
		{"two bodies", "PUT", entities + "/e", `{"name":"x"} {}`, 400, api.Invalid, "more than one value"},
		{"a member twice", "PUT", entities + "/e", `{"name":"x","metadata":{"name":"z"},"name":"y"}`, 400, api.Invalid, `the member "name" twice`},
		{"a member of a member twice", "PUT", limits + "/system", `{"limits":{"rpm":"5/minute","rpm":"7/minute"}}`, 400, api.Invalid, `the member "rpm" twice`},
		{"an unknown member", "PUT", entities + "/e", `{"namee":"x"}`, 400, api.Invalid, `did you mean "name"?`},
		{"another type", "PUT", entities + "/e", `{"cascade":"yes"}`, 400, api.Invalid, "cascade is of type string"},
		{"a list for a body", "PUT", entities + "/e", `[]`, 400, api.Invalid, "the body: it is of type array; it must be an object"},
		{"a number for text", "POST", "/v1/namespaces/default/buckets/reset", `{"entity":"key","resource":"r","limit":5}`, 400, api.Invalid, "limit is of type number; it must be text"},
		{"a list for limits", "PUT", limits + "/system", `{"limits":[]}`, 400, api.Invalid, "limits is of type array; it must be an object"},
		{"text for a flag", "PUT", entities + "/e", `{"cascade":{}}`, 400, api.Invalid, "cascade is of type object; it must be true or false"},
		{"bytes", "PUT", entities + "/e", "{\"name\":\"\xff\"}", 400, api.Invalid, "UTF-8"},
		{"another ID", "PUT", entities + "/e", `{"id":"f"}`, 400, api.Invalid, "the path says e"},
		{"a cycle", "PUT", entities + "/here", `{"parent":"child"}`, 400, api.Invalid, "its own ancestor"},
		{"cascade to nobody", "PUT", entities + "/e", `{"cascade":true}`, 400, api.Invalid, "parent"},
		{"no name", "PUT", entities + "/", "{}", 404, api.NotFound, "/v1/openapi.json"},
		{"no such namespace", "GET", "/v1/namespaces/none", "", 404, api.NotFound, "never in use"},
		{"deleting no namespace", "DELETE", "/v1/namespaces/none", "", 404, api.NotFound, "never in use"},
		{"recovering no namespace", "POST", "/v1/namespaces/none/recover", "", 404, api.NotFound, "never in use"},
		{"purging no namespace", "POST", "/v1/namespaces/none/purge", "", 404, api.NotFound, "never in use"},
		{"purging what is active", "POST", "/v1/namespaces/default/purge", "", 409, api.State, "is active: delete it first"},
		{"purging no orphan", "POST", "/v1/orphans/none/purge", "", 404, api.NotFound, "none"},
		{"a filter of namespaces", "GET", "/v1/namespaces?deleted=yes", "", 400, api.Invalid, "true or false"},
		{"a precondition of a namespace", "PUT", "/v1/namespaces/none?dryRun=maybe", "", 400, api.Invalid, "true or false"},
		{"no limits", "PUT", limits + "/system", `{"limits":{}}`, 400, api.Invalid, "DELETE"},
		{"the default of no entity", "PUT", limits + "/resources/_default_", `{"limits":{"rpm":"5/day"}}`, 400, api.Invalid, "name an entity"},
		{"a cursor of the audit", "GET", "/v1/namespaces/default/audit?after=x", "", 400, api.Invalid, "no cursor"},
		{"a rate", "PUT", limits + "/system", `{"limits":{"rpm":"5/fortnight"}}`, 400, api.Invalid, "limit rpm: a period must be"},
		{"a limit's name", "PUT", limits + "/system", `{"limits":{"9":"5/day"}}`, 400, api.Invalid, `limit name "9"`},
		{"wcu", "PUT", limits + "/system", `{"limits":{"wcu":"5/day"}}`, 400, api.Invalid, "reserved"},
		{"a limit's member", "PUT", limits + "/system", `{"limits":{"rpm":{"rate":"5/day","brust":3}}}`, 400, api.Invalid, "a limit is a rate"},
		{"dollars of what is no money", "PUT", limits + "/system", `{"limits":{"tokens":"5 USD/hour"}}`, 400, api.Invalid, "such as tokens_usd"},
		{"a debt", "PUT", limits + "/system", `{"limits":{"rpm":{"rate":"5/day","max_debt":-1}}}`, 400, api.Invalid, "0 or more"},
		{"a burst of what is unlimited", "PUT", limits + "/system", `{"limits":{"rpm":{"rate":"unlimited","burst":1}}}`, 400, api.Invalid, "unlimited"},
		{"an empty budget", "PUT", limits + "/system", `{"limits":{"rpm":{"rate":"5/day","budget":{}}}}`, 400, api.Invalid, "needs hour, day or month"},
		{"a budget's window", "PUT", limits + "/system", `{"limits":{"rpm":{"rate":"5/day","budget":{"week":1}}}}`, 400, api.Invalid, "it must be hour, day or month"},
		{"a budget of 0", "PUT", limits + "/system", `{"limits":{"rpm":{"rate":"5/day","budget":{"day":0}}}}`, 400, api.Invalid, "the budget of limit rpm for each day is 0; it must be 1 to"},
		{"a fraction of a budget", "PUT", limits + "/system", `{"limits":{"rpm":{"rate":"5/day","budget":{"day":0.5}}}}`, 400, api.Invalid, "number 0.5"},
		{"a budget of what is unlimited", "PUT", limits + "/system", `{"limits":{"rpm":{"rate":"unlimited","budget":{"day":1}}}}`, 400, api.Invalid, "give a high rate"},
		{"too many limits", "PUT", limits + "/system", `{"limits":{` + strings.Join(many, ",") + `}}`, 400, api.Invalid, "at most 16"},
		{"a policy", "PUT", limits + "/system", `{"on_unavailable":"alow"}`, 400, api.Invalid, "allow, deny or local"},
		{"a policy of a resource", "PUT", limits + "/resources/r", `{"on_unavailable":"deny"}`, 400, api.Invalid, "only the system's limits"},
		{"another level", "PUT", limits + "/resources/r", `{"level":"system","limits":{"l":"1/day"}}`, 400, api.Invalid, "the path says resource"},
		{"another resource", "PUT", limits + "/resources/r", `{"resource":"s","limits":{"l":"1/day"}}`, 400, api.Invalid, "resource r"},
		{"an entity of a resource", "PUT", limits + "/resources/r", `{"entity":"s","limits":{"l":"1/day"}}`, 400, api.Invalid, "resource r"},
		{"deleting nothing", "DELETE", entities + "/none", "", 404, api.NotFound, "none"},
		{"deleting no limits", "DELETE", limits + "/resources/none", "", 404, api.NotFound, "none"},
		{"a bucket of nobody", "POST", "/v1/namespaces/default/buckets/reset", `{"entity":"nobody","resource":"r"}`, 404, api.NotFound, "none is in use, so a request finds a full one"},
		{"a bucket without a resource", "POST", "/v1/namespaces/default/buckets/reset", `{"entity":"key"}`, 400, api.Invalid, "resource"},
		{"a variant", "POST", "/v1/namespaces/default/buckets/reset", `{"entity":"key","resource":"r","variant":"x"}`, 400, api.Invalid, "16 hexadecimal digits"},
		{"a reset with an amount", "POST", "/v1/namespaces/default/buckets/reset", `{"entity":"key","resource":"r","tokens":1}`, 400, api.Invalid, "takes no amount"},
		{"a top-up without an amount", "POST", "/v1/namespaces/default/buckets/top-up", `{"entity":"key","resource":"r"}`, 400, api.Invalid, "member tokens"},
		{"an amount of four decimals", "POST", "/v1/namespaces/default/buckets/top-up", `{"entity":"key","resource":"r","tokens":0.0001}`, 400, api.Invalid, "three decimals"},
		{"an amount as text", "POST", "/v1/namespaces/default/buckets/top-up", `{"entity":"key","resource":"r","tokens":"5"}`, 400, api.Invalid, "three decimals"},
		{"a top-up that does not fit", "POST", "/v1/namespaces/default/buckets/top-up", `{"entity":"key","resource":"r","tokens":11,"once":"k"}`, 409, api.Full, `nothing was booked, and the text "k" can be used later; with "up-to-capacity" the member excess books what fits, with "beyond" all`},
		{"an excess that is none", "POST", "/v1/namespaces/default/buckets/top-up", `{"entity":"key","resource":"r","tokens":1,"excess":"all"}`, 400, api.Invalid, `the member excess is "all"`},
		{"an excess of a set", "POST", "/v1/namespaces/default/buckets/set", `{"entity":"key","resource":"r","tokens":1,"excess":"up-to-capacity"}`, 400, api.Invalid, "excess is of a top-up"},
		{"a negative amount", "POST", "/v1/namespaces/default/buckets/take-out", `{"entity":"key","resource":"r","tokens":-1}`, 400, api.Invalid, "must be 0 to"},
		{"more than the capacity", "POST", "/v1/namespaces/default/buckets/set", `{"entity":"key","resource":"r","tokens":11}`, 400, api.Invalid, "at most 10 tokens"},
		{"another limit", "POST", "/v1/namespaces/default/buckets/set", `{"entity":"key","resource":"r","limit":"x","tokens":1}`, 400, api.Invalid, "no limit \"x\""},
		{"a cursor of namespaces", "GET", "/v1/namespaces?after=*", "", 400, api.Invalid, "cursor"},
		{"disabling nothing", "PUT", disabled + "/entities/", "", 404, api.NotFound, "/v1/openapi.json"},
		{"disabling limits of an entity", "PUT", disabled + "/entities/e/r", "", 404, api.NotFound, "/v1/openapi.json"},
		{"disabling by the entity", "PUT", entities + "/here", `{"disabled":true}`, 400, api.Invalid, "/disabled/"},
		{"disabling by the limits", "PUT", limits + "/resources/r", `{"disabled":true,"limits":{"l":"1/day"}}`, 400, api.Invalid, "/disabled/"},
		{"posting a switch", "POST", disabled + "/namespace", "{}", 405, api.Method, "DELETE, GET, HEAD, PUT"},
		{"a dry run of a switch", "PUT", disabled + "/namespace?dryRun=1", "", 400, api.Invalid, "true or false"},
		{"the audit of two", "GET", "/v1/namespaces/default/audit?entity=a&resource=b", "", 400, api.Invalid, "not both"},
		{"the audit of the system and an entity", "GET", "/v1/namespaces/default/audit?entity=a&system=true", "", 400, api.Invalid, "not two of them"},
		{"the audit of an action", "GET", "/v1/namespaces/default/audit?action=limits.putt", "", 400, api.Invalid, `did you mean "limits.put"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := s.do(t, test.method, test.target, test.body)
			p := problemOf(t, w)
			if w.Code != test.status || p.Type != test.kind || !strings.Contains(p.Detail, test.detail) {
				t.Errorf("got %d %+v, want %d %s %q", w.Code, p, test.status, test.kind, test.detail)
			}
		})
	}
	if now := s.generation(t); now != before {
		t.Errorf("generation %d, and %d before: something was changed", now, before)
	}
}

// endless is a body that never ends.
type endless struct{}

func (endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = ' '
	}
	return len(b), nil
}

// Little is read of a body that is too large.
func TestLargeBody(t *testing.T) {
	s := newServer(t, nil)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPut, entities+"/e", io.LimitReader(endless{}, 100<<20))
	r.Header.Set("Authorization", "Bearer "+s.tokens[admin.RoleAdminister])
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	s.control.ServeHTTP(w, r)
	if p := problemOf(t, w); w.Code != http.StatusRequestEntityTooLarge || p.Type != api.TooLarge {
		t.Errorf("got %d %+v", w.Code, p)
	}
	w = s.do(t, http.MethodPut, entities+"/e", `{}`, "Content-Type", "text/plain")
	if p := problemOf(t, w); w.Code != http.StatusUnsupportedMediaType || p.Type != api.MediaType {
		t.Errorf("text: got %d %+v", w.Code, p)
	}
}

// A change needs the role administer. Any role can read.
func TestRoles(t *testing.T) {
	s := newServer(t, nil)
	s.must(t, http.StatusCreated, http.MethodPut, entities+"/e", `{}`)
	for role, status := range map[admin.Role]int{admin.RoleRead: 403, admin.RoleOperate: 403, admin.RoleAdminister: 200} {
		if w := s.as(t, role, http.MethodGet, entities+"/e", ""); w.Code != http.StatusOK {
			t.Errorf("%s reads: %d %s", role, w.Code, w.Body)
		}
		w := s.as(t, role, http.MethodPut, entities+"/e", `{}`)
		if w.Code != status {
			t.Errorf("%s writes: %d %s, want %d", role, w.Code, w.Body, status)
		}
		if status == http.StatusForbidden {
			if p := problemOf(t, w); p.Type != api.Forbidden {
				t.Errorf("%s writes: %+v", role, p)
			}
		}
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/none", nil)
	w := httptest.NewRecorder()
	s.control.ServeHTTP(w, r)
	if p := problemOf(t, w); w.Code != http.StatusUnauthorized || p.Type != api.Unauthorized {
		t.Errorf("a stranger asks for a path that does not exist: %d %+v", w.Code, p)
	}
}

// A store without an audit, or without control, is reported as such.
func TestWhatAStoreDoesNotOffer(t *testing.T) {
	memory := newServer(t, inMemory(t))
	none, err := controlapi.New(controlapi.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		answer *httptest.ResponseRecorder
		detail string
	}{
		"no audit":   {memory.do(t, http.MethodGet, "/v1/namespaces/default/audit", ""), "serve --data DIR"},
		"no control": {routed(t, none, entities), "the store of this service"},
	} {
		p := problemOf(t, test.answer)
		if test.answer.Code != http.StatusNotImplemented || p.Type != api.Unsupported || !strings.Contains(p.Detail, test.detail) {
			t.Errorf("%s: %d %+v", name, test.answer.Code, p)
		}
	}
}

// routed requests a path of an API, without a control.
func routed(t *testing.T, a *controlapi.API, path string) *httptest.ResponseRecorder {
	t.Helper()
	var mux http.ServeMux
	for _, route := range a.Routes() {
		mux.Handle(route.Pattern, route.Handler)
	}
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	return w
}

// A change with a precondition is made only if it holds, and the etag shows that.
func TestPreconditions(t *testing.T) {
	s := newServer(t, nil)
	for _, test := range []struct{ path, first, second string }{
		{entities + "/e", `{"name":"first"}`, `{"name":"second"}`},
		{limits + "/resources/r", `{"limits":{"l":"1/day"}}`, `{"limits":{"l":"2/day"}}`},
	} {
		s.must(t, 400, http.MethodPut, test.path, test.first, "If-Match", "")
		s.must(t, 400, http.MethodPut, test.path, test.first, "If-None-Match", " ")
		s.must(t, 412, http.MethodPut, test.path, test.first, "If-Match", "*")
		old := s.must(t, 201, http.MethodPut, test.path, test.first, "If-None-Match", "*").Header().Get("ETag")
		s.must(t, 412, http.MethodPut, test.path, test.second, "If-None-Match", "*")
		s.must(t, 400, http.MethodPut, test.path, test.second, "If-None-Match", old)
		if got := s.must(t, 200, http.MethodGet, test.path, "").Header().Get("ETag"); got != old || old == "" {
			t.Errorf("%s: etag %s, want %s", test.path, got, old)
		}
		next := s.must(t, 200, http.MethodPut, test.path, test.second, "If-Match", `"x", `+old).Header().Get("ETag")
		s.must(t, 412, http.MethodPut, test.path, test.first, "If-Match", old)
		s.must(t, 412, http.MethodDelete, test.path, "", "If-Match", old)
		stale := strings.Replace(test.first, "{", `{"etag":`+strconv.Quote(old)+",", 1)
		s.must(t, 412, http.MethodPut, test.path, stale)
		s.must(t, 200, http.MethodPut, test.path, strings.Replace(stale, strconv.Quote(old), strconv.Quote(next), 1))
		s.must(t, 200, http.MethodDelete, test.path, "", "If-Match", "*")
	}
}

// Of concurrent changes to the same etag, one is made.
func TestConcurrentChanges(t *testing.T) {
	s := newServer(t, nil)
	tag := s.must(t, 201, http.MethodPut, entities+"/e", `{}`).Header().Get("ETag")
	var all sync.WaitGroup
	codes := make([]int, 16)
	for i := range codes {
		all.Go(func() {
			codes[i] = s.do(t, http.MethodPut, entities+"/e", `{"name":"`+strconv.Itoa(i)+`"}`, "If-Match", tag).Code
		})
	}
	all.Wait()
	made := 0
	for _, code := range codes {
		if code == http.StatusOK {
			made++
		} else if code != http.StatusPreconditionFailed {
			t.Errorf("status %d", code)
		}
	}
	if made != 1 {
		t.Errorf("%d changes were made, want 1", made)
	}
}
