package cli

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

const consoleHost = "127.0.0.1:8099"

// fakeService records the requests that the proxy makes, and answers with a text and a cookie.
type fakeService struct {
	requests []*http.Request
	bodies   []string
	err      error
}

func (s *fakeService) Do(r *http.Request) (*http.Response, error) {
	if s.err != nil {
		return nil, s.err
	}
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
	}
	s.requests, s.bodies = append(s.requests, r), append(s.bodies, string(body))
	w := httptest.NewRecorder()
	w.Header().Set("Set-Cookie", "service=1")
	w.Header().Set("ETag", `"e"`)
	_, _ = io.WriteString(w, "of the service")
	return w.Result(), nil
}

// proxyFixture is a proxy with its service and its clock.
type proxyFixture struct {
	*consoleProxy

	service fakeService
	now     time.Time
}

func newProxyFixture(t *testing.T) *proxyFixture {
	t.Helper()
	base, err := url.Parse("http://upstream.example/prefix")
	if err != nil {
		t.Fatal(err)
	}
	f := &proxyFixture{now: time.Unix(1000, 0)}
	f.consoleProxy = newConsoleProxy(consoleProxyConfig{Service: &f.service, Base: base, Address: consoleHost, Now: func() time.Time { return f.now }})
	return f
}

// ask makes a request as the page does. Headers are names and values; Host is one of them.
func (f *proxyFixture) ask(t *testing.T, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	r.Host = consoleHost
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
			continue
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	f.ServeHTTP(w, r)
	return w
}

// token is the token of the link.
func (f *proxyFixture) token(t *testing.T) string {
	t.Helper()
	token, ok := strings.CutPrefix(f.Link(), "http://"+consoleHost+"/#login=")
	if !ok || len(token) < 26 {
		t.Fatalf("the link is %s", f.Link())
	}
	return token
}

func (f *proxyFixture) login(t *testing.T, token string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	return f.ask(t, http.MethodPost, "/console/login", `{"token":"`+token+`"}`, headers...)
}

// cookie logs in, and returns the cookie as a browser sends it.
func (f *proxyFixture) cookie(t *testing.T) string {
	t.Helper()
	cookies := f.login(t, f.token(t)).Result().Cookies()
	if len(cookies) != 1 {
		t.Fatalf("got the cookies %v", cookies)
	}
	return cookies[0].Name + "=" + cookies[0].Value
}

// A token is for one login. The cookie of it, and nothing else, opens the service.
func TestLogin(t *testing.T) {
	f := newProxyFixture(t)
	if w := f.ask(t, http.MethodGet, "/console/session", ""); w.Code != http.StatusUnauthorized {
		t.Errorf("a session before the login: %d", w.Code)
	}
	if w := f.login(t, "wrong"); w.Code != http.StatusUnauthorized || len(w.Result().Cookies()) > 0 {
		t.Errorf("a wrong token: %d", w.Code)
	}
	w := f.login(t, f.token(t), "Origin", "http://"+consoleHost, "Sec-Fetch-Site", "same-origin")
	if w.Code != http.StatusNoContent || w.Body.Len() > 0 {
		t.Fatalf("login: %d %s", w.Code, w.Body)
	}
	set := w.Header().Get("Set-Cookie")
	name, rest, _ := strings.Cut(set, "=")
	value, attributes, _ := strings.Cut(rest, "; ")
	if name != "ratelimit_console_8099" || len(value) < 26 || attributes != "Path=/; HttpOnly; SameSite=Strict" {
		t.Errorf("the cookie is %s", set)
	}
	if w := f.login(t, f.token(t)); w.Code != http.StatusUnauthorized || w.Header().Get("Set-Cookie") != "" {
		t.Errorf("a second login: %d", w.Code)
	}
	for cookie, want := range map[string]int{
		name + "=" + value: http.StatusNoContent, "other=1; " + name + "=" + value: http.StatusNoContent,
		"": http.StatusUnauthorized, name + "=": http.StatusUnauthorized, name + "=" + f.token(t): http.StatusUnauthorized,
		"ratelimit_console=" + value: http.StatusUnauthorized, name + "=" + value + "x": http.StatusUnauthorized,
	} {
		if w := f.ask(t, http.MethodGet, "/console/session", "", "Cookie", cookie); w.Code != want {
			t.Errorf("session with the cookie %q: %d, want %d", cookie, w.Code, want)
		}
	}
	for _, bearer := range []string{value, f.token(t)} {
		if w := f.ask(t, http.MethodGet, "/v1/status", "", "Authorization", "Bearer "+bearer); w.Code != http.StatusUnauthorized {
			t.Errorf("a header in place of the cookie: %d", w.Code)
		}
	}
	if len(f.service.requests) != 0 {
		t.Errorf("the service was asked %d times", len(f.service.requests))
	}
}

// The time of a login is bounded, the session is not.
func TestLoginTime(t *testing.T) {
	late := newProxyFixture(t)
	late.now = late.now.Add(consoleLoginTime)
	if w := late.login(t, late.token(t)); w.Code != http.StatusUnauthorized || !strings.Contains(w.Body.String(), "start ratelimit console again") {
		t.Errorf("after a minute: %d %s", w.Code, w.Body)
	}
	f := newProxyFixture(t)
	f.now = f.now.Add(consoleLoginTime - 1)
	cookie := f.cookie(t)
	f.now = f.now.Add(24 * time.Hour)
	if w := f.ask(t, http.MethodGet, "/v1/status", "", "Cookie", cookie); w.Code != http.StatusOK {
		t.Errorf("a day later: %d", w.Code)
	}
}

// Requests under another name, and of pages of another site or port, are refused, with the cookie too.
func TestForeignPages(t *testing.T) {
	f := newProxyFixture(t)
	for name, headers := range map[string][]string{
		"a name of another party": {"Host", "evil.example:8099"},
		"an address":              {"Host", "192.0.2.1:8099"},
		"a name that begins so":   {"Host", "127.0.0.1.evil.example"},
		"no name":                 {"Host", ""},
		"another site":            {"Origin", "https://evil.example"},
		"another port":            {"Origin", "http://127.0.0.1:9999"},
		"no origin to tell":       {"Origin", "null"},
		"https":                   {"Origin", "https://" + consoleHost},
		"a cross-site request":    {"Sec-Fetch-Site", "cross-site"},
		"a same-site request":     {"Sec-Fetch-Site", "same-site"},
	} {
		if w := f.login(t, f.token(t), headers...); w.Code != http.StatusForbidden && w.Code != http.StatusMisdirectedRequest {
			t.Errorf("login from %s: %d", name, w.Code)
		}
	}
	cookie := f.cookie(t) // none of them has used the token
	for name, headers := range map[string][]string{
		"a name of another party": {"Host", "evil.example:8099"}, "another port": {"Origin", "http://127.0.0.1:9999"}, "a same-site request": {"Sec-Fetch-Site", "same-site"},
	} {
		for _, call := range []struct{ method, path string }{{http.MethodGet, "/v1/status"}, {http.MethodDelete, "/v1/namespaces/default/entities/a"}, {http.MethodGet, "/console/session"}} {
			if w := f.ask(t, call.method, call.path, "", append(headers, "Cookie", cookie)...); w.Code != http.StatusForbidden && w.Code != http.StatusMisdirectedRequest {
				t.Errorf("%s %s from %s: %d", call.method, call.path, name, w.Code)
			}
		}
	}
	if len(f.service.requests) != 0 {
		t.Errorf("the service was asked %d times", len(f.service.requests))
	}
	for _, forwarded := range []string{"localhost:7000", "127.0.0.1:7000"} { // ssh -L
		if w := f.ask(t, http.MethodGet, "/v1/status", "", "Host", forwarded, "Origin", "http://"+forwarded, "Cookie", cookie); w.Code != http.StatusOK {
			t.Errorf("by %s: %d %s", forwarded, w.Code, w.Body)
		}
	}
}

// The page and its files need no session; no path is taken for one of them that a server may read as another.
func TestPageIsOpen(t *testing.T) {
	f := newProxyFixture(t)
	open := []string{"/", "/?namespace=a", "/console/main.js", "/console/a/b.js"}
	for _, path := range open {
		if w := f.ask(t, http.MethodGet, path, "", "Sec-Fetch-Site", "cross-site"); w.Code != http.StatusOK {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	for _, path := range []string{
		"/v1/status", "/console/../v1/status", "/console/%2e%2e/v1/status", "/console/..%2fv1/status", "/console//v1", "/console/./v1", "/console/", "/console", "//v1/status",
	} {
		if w := f.ask(t, http.MethodGet, path, ""); w.Code != http.StatusUnauthorized {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	if w := f.ask(t, http.MethodPost, "/", "{}"); w.Code != http.StatusUnauthorized {
		t.Errorf("POST: %d", w.Code)
	}
	if len(f.service.requests) != len(open) {
		t.Errorf("the service was asked %d times, want %d", len(f.service.requests), len(open))
	}
}

// A request goes to the service as it is, without what the browser knows.
func TestForward(t *testing.T) {
	f := newProxyFixture(t)
	cookie := f.cookie(t)
	w := f.ask(t, http.MethodPut, "/v1/namespaces/default/limits/entities/key%2Fk-1?dryRun=true", `{"limits":{}}`, "Cookie", cookie+"; other=1",
		"If-Match", `"e"`, "Authorization", "Bearer x", "Origin", "http://"+consoleHost, "Referer", "http://"+consoleHost+"/", "Sec-Fetch-Site", "same-origin", "X-Forwarded-For", "192.0.2.1")
	if w.Code != http.StatusOK || w.Body.String() != "of the service" || w.Header().Get("ETag") != `"e"` || w.Header().Get("Set-Cookie") != "" {
		t.Errorf("got %d %s %v", w.Code, w.Body, w.Header())
	}
	if len(f.service.requests) != 1 {
		t.Fatalf("the service was asked %d times", len(f.service.requests))
	}
	r := f.service.requests[0]
	if want := "http://upstream.example/prefix/v1/namespaces/default/limits/entities/key%2Fk-1?dryRun=true"; r.Method != http.MethodPut || r.URL.String() != want || r.Host != "" || r.RequestURI != "" {
		t.Errorf("%s %s, Host %q, want %s", r.Method, r.URL, r.Host, want)
	}
	if r.Header.Get("If-Match") != `"e"` || r.Header.Get("Content-Type") != "application/json" || f.service.bodies[0] != `{"limits":{}}` {
		t.Errorf("%v %q", r.Header, f.service.bodies)
	}
	for _, name := range []string{"Cookie", "Authorization", "Origin", "Referer", "Sec-Fetch-Site", "X-Forwarded-For"} {
		if r.Header.Get(name) != "" {
			t.Errorf("the service gets %s: %s", name, r.Header.Get(name))
		}
	}
	f.service.err = errors.New("no service answers")
	if w := f.ask(t, http.MethodGet, "/v1/status", "", "Cookie", cookie); w.Code != http.StatusBadGateway || !strings.Contains(w.Body.String(), "no service answers") {
		t.Errorf("without a service: %d %s", w.Code, w.Body)
	}
}

// Logins that are none use nothing up.
func TestLoginsThatAreNone(t *testing.T) {
	f := newProxyFixture(t)
	token := `{"token":"` + f.token(t) + `"}`
	for _, test := range []struct {
		name, method, body, kind string
		want                     int
	}{
		{"by GET", http.MethodGet, "", "", http.StatusMethodNotAllowed},
		{"of a form", http.MethodPost, token, "application/x-www-form-urlencoded", http.StatusUnsupportedMediaType},
		{"as text", http.MethodPost, token, "text/plain", http.StatusUnsupportedMediaType},
		{"without JSON", http.MethodPost, "token", "application/json", http.StatusBadRequest},
		{"too long", http.MethodPost, `{"x":"` + strings.Repeat("x", 2000) + `","token":"` + f.token(t) + `"}`, "application/json", http.StatusBadRequest},
		{"without a token", http.MethodPost, "{}", "application/json", http.StatusUnauthorized},
	} {
		if w := f.ask(t, test.method, "/console/login", test.body, "Content-Type", test.kind); w.Code != test.want || strings.Contains(w.Body.String(), f.token(t)) {
			t.Errorf("%s: %d %s, want %d", test.name, w.Code, w.Body, test.want)
		}
	}
	f.cookie(t)
}
