package durable_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
)

// answered sends a request and returns the status and the body. header is key and value in turn.
func answered(t *testing.T, method, address, body string, header ...string) (code int, text string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			request.Host = header[i+1]
		}
		request.Header.Set(header[i], header[i+1])
	}
	transport := &http.Transport{DisableKeepAlives: true}
	response, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	all, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(all)
}

// bareProxy passes requests on as a proxy with few settings does: the upstream sees it as a
// neighbor, its own name as the host, and no header that names the client.
func bareProxy(t *testing.T, upstream string) *httptest.Server {
	t.Helper()
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: "http", Host: upstream})
		r.Out.Host = "localhost"
		for _, name := range []string{"Forwarded", "X-Forwarded-For", "Via", "Origin"} {
			r.Out.Header.Del(name)
		}
	}}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	return server
}

// A client of a proxy gets no backup, and changes nothing.
func TestProxyOpensNoAdministration(t *testing.T) {
	p := start(t, t.TempDir(), configuration(t, rules))
	proxy := bareProxy(t, p.http)
	const sentence = "administration is on a listener of its own"
	for _, base := range []string{proxy.URL, "http://" + p.http} {
		for _, test := range []struct{ method, path string }{
			{http.MethodGet, "/v1/backup"}, {http.MethodHead, "/v1/backup"}, {http.MethodPost, "/v1/restore"},
		} {
			code, text := answered(t, test.method, base+test.path, "x", "Host", "localhost", "Content-Type", "application/vnd.ratelimit.backup")
			if code != http.StatusNotFound || test.method != http.MethodHead && !strings.Contains(text, sentence) {
				t.Errorf("%s %s: got %d with %d bytes, want 404 with %q", test.method, base+test.path, code, len(text), sentence)
			}
		}
	}
}

// A page of another site, in a browser on this machine, takes nothing and learns nothing.
func TestPageOfAnotherSite(t *testing.T) {
	p := start(t, t.TempDir(), configuration(t, rules))
	const call = `{"domain":"d","descriptors":[{"entries":[{"key":"ledger","value":"a"}]}]}`
	const question = `{"domain":"d","entries":[{"key":"ledger","value":"a"}]}`
	const inJSON = "application/json"
	for _, test := range []struct {
		name   string
		header []string
		code   int
		want   string
	}{
		{"a form of another site", []string{"Content-Type", "application/x-www-form-urlencoded", "Sec-Fetch-Site", "cross-site"}, http.StatusForbidden, "another site"},
		{"plain text of another origin", []string{"Content-Type", "text/plain", "Origin", "http://evil.example"}, http.StatusForbidden, "another site"},
		{"another site", []string{"Content-Type", inJSON, "Sec-Fetch-Site", "cross-site"}, http.StatusForbidden, "another site"},
		{"another name of the site", []string{"Content-Type", inJSON, "Sec-Fetch-Site", "same-site"}, http.StatusForbidden, "another site"},
		{"another origin", []string{"Content-Type", inJSON, "Origin", "http://evil.example"}, http.StatusForbidden, "another site"},
		{"a name for this machine", []string{"Content-Type", inJSON, "Host", "evil.example:8080", "Origin", "http://evil.example:8080"}, http.StatusMisdirectedRequest, "server.http.hosts"},
		{"with a charset", []string{"Content-Type", inJSON + "; charset=utf-8"}, http.StatusOK, "{"},
		{"of its own", []string{"Content-Type", inJSON, "Sec-Fetch-Site", "same-origin", "Host", "localhost:8080", "Origin", "http://localhost:8080"}, http.StatusOK, "{"},
	} {
		for path, body := range map[string]string{"/json": call, "/v1/explain": question} {
			code, text := answered(t, http.MethodPost, "http://"+p.http+path, body, test.header...)
			if code != test.code || !strings.Contains(text, test.want) {
				t.Errorf("%s to %s: got %d %s, want %d with %q", test.name, path, code, text, test.code, test.want)
			}
		}
	}
	if got := p.balance(t, "ledger", "a", "n"); got < 9_999_998 || got > 9_999_998.9 {
		t.Errorf("got %v left, want 10,000,000 less the two of the calls that were let in", got)
	}
}

// Over /json tokens are taken, and nothing is given back or put into debt, unless the
// configuration says so.
func TestRefundsAndChargesOverJSON(t *testing.T) {
	allowed := strings.Replace(rules, "domains:", "server: {http: {refunds: true, charges: true}}\ndomains:", 1)
	call := func(entry, more string) string {
		return `{"domain":"d","descriptors":[{"entries":[{"key":"` + entry + `","value":"a"}],` + more + `}]}`
	}
	for _, test := range []struct {
		name, rules, body string
		code              int
		want              string
	}{
		{"a refund", rules, call("ledger", `"hitsAddend":"2","isNegativeHits":true`), http.StatusForbidden, "server.http.refunds"},
		{"a refund that is unmatched", rules, call("none", `"hitsAddend":"2","isNegativeHits":true`), http.StatusForbidden, "server.http.refunds"},
		{"a charge", rules, call("debt", `"hitsAddend":"2"`), http.StatusForbidden, "server.http.charges"},
		{"a take", rules, call("ledger", `"hitsAddend":"2"`), http.StatusOK, "OK"},
		{"a peek at a rule of charges", rules, call("debt", `"hitsAddend":"0"`), http.StatusOK, "OK"},
		{"a refund that is allowed", allowed, call("ledger", `"hitsAddend":"2","isNegativeHits":true`), http.StatusOK, "OK"},
		{"a charge that is allowed", allowed, call("debt", `"hitsAddend":"2"`), http.StatusOK, "OK"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := start(t, t.TempDir(), configuration(t, test.rules))
			code, text := answered(t, http.MethodPost, "http://"+p.http+"/json", test.body, "Content-Type", "application/json")
			if code != test.code || !strings.Contains(text, test.want) {
				t.Errorf("got %d %s, want %d with %q", code, text, test.code, test.want)
			}
		})
	}
}
