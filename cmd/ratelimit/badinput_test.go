package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ratelimit/ratelimit/internal/cli"
	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/test/kit/programtest"
)

// operated is a service with a data directory that operators reach over TCP, by tokens.
type operated struct {
	url    string
	tokens map[string]string // by role
}

func startOperated(t *testing.T) *operated {
	t.Helper()
	o := &operated{tokens: map[string]string{"none": "", "wrong": "rlt_" + strings.Repeat("x", 43)}}
	settings := make([]string, 0, 3)
	for _, role := range []string{"read", "operate", "administer"} {
		token, hash := newTokenPair(t)
		o.tokens[role] = token
		settings = append(settings, fmt.Sprintf("%s: {role: %s, hash: %q}", role, role, hash))
	}
	file := programtest.WriteFile(t, "c.yaml", adminConfig("address: '127.0.0.1:0', tokens: {"+strings.Join(settings, ", ")+"}"))
	r := start(t, "--config", file, "--data", t.TempDir(), "--new-data")
	o.url = strings.Replace(r.adminURL(t), "https:", "http:", 1)
	return o
}

// send makes a request as a role.
func (o *operated) send(t *testing.T, role, method, path string, body io.Reader, header ...string) (code int, answer []byte, head http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, o.url+path, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if token := o.tokens[role]; token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if answer, err = io.ReadAll(resp.Body); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, answer, resp.Header
}

// run runs a command as an administrator.
func (o *operated) run(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	t.Setenv(cli.TokenVariable, o.tokens["administer"])
	return output(t, append(args, "--server", o.url)...)
}

// must runs a command that has to succeed, and returns its output.
func (o *operated) must(t *testing.T, args ...string) string {
	t.Helper()
	code, stdout, stderr := o.run(t, args...)
	if code != command.ExitOK {
		t.Fatalf("%v: exit code %d: %s", args, code, stderr)
	}
	return stdout
}

// stored is all that the service keeps.
func (o *operated) stored(t *testing.T) string {
	t.Helper()
	return o.must(t, "export") + o.must(t, "list", "buckets") + o.must(t, "list", "disabled") + o.must(t, "list", "namespaces")
}

// Requests that the service must refuse. Each gets a problem of RFC 9457, and changes nothing.
func TestBadRequests(t *testing.T) {
	o := startOperated(t)
	o.must(t, "set", "entity", "here", "--name", "here")
	o.must(t, "set", "limits", "--resource", "r", "rpm=5/day", "--allow-new")
	const ns = "/v1/namespaces/default"
	before := o.stored(t)
	for _, test := range []struct {
		name, role, method, path, body, header string
		status                                 int
		kind                                   api.Kind
		detail                                 string
	}{
		{"no token", "none", "GET", "/v1/status", "", "", 401, api.Unauthorized, "a token is needed"},
		{"a wrong token", "wrong", "GET", "/v1/status", "", "", 401, api.Unauthorized, "not known"},
		{"a stranger and a path that is none", "wrong", "GET", "/v1/nothing", "", "", 401, api.Unauthorized, "not known"},
		{"a reader who changes", "read", "PUT", ns + "/entities/e", "{}", "", 403, api.Forbidden, "role administer"},
		{"a reader who resets", "read", "POST", ns + "/buckets/reset", `{"entity":"here","resource":"r"}`, "", 403, api.Forbidden, "role operate"},
		{"an operator who sets limits", "operate", "PUT", ns + "/limits/system", `{"limits":{"l":"1/day"}}`, "", 403, api.Forbidden, "role administer"},
		{"an operator who purges", "operate", "POST", "/v1/namespaces/default/purge", "", "", 403, api.Forbidden, "role administer"},
		{"an unknown noun", "administer", "GET", ns + "/entitys", "", "", 404, api.NotFound, "/v1/openapi.json"},
		{"an unknown method", "administer", "PATCH", ns + "/entities/here", "{}", "", 405, api.Method, "PUT"},
		{"a stale etag", "administer", "PUT", ns + "/entities/here", `{"name":"x"}`, `If-Match="v999"`, 412, api.Precondition, "read it again"},
		{"a stale etag of a deletion", "administer", "DELETE", ns + "/limits/resources/r", "", `If-Match="0"`, 412, api.Precondition, "read it again"},
		{"an etag in the body", "administer", "PUT", ns + "/entities/here", `{"name":"x","etag":"\"v999\""}`, "", 412, api.Precondition, "read it again"},
		{"a record that must be new", "administer", "PUT", ns + "/entities/here", `{}`, "If-None-Match=*", 412, api.Precondition, "stored here already"},
		{"a namespace that is none", "administer", "GET", "/v1/namespaces/none", "", "", 404, api.NotFound, "never in use"},
		{"an entity of a namespace that is none", "administer", "GET", "/v1/namespaces/none/entities/e", "", "", 404, api.NotFound, "namespace none"},
		{"a change of limits of no entity", "administer", "DELETE", "/v1/namespaces/none/entities/e", "", "", 404, api.NotFound, "none"},
		{"a reserved resource", "administer", "PUT", ns + "/limits/resources/_default_", `{"limits":{"l":"1/day"}}`, "", 400, api.Invalid, "name an entity"},
		{"a reserved limit", "administer", "PUT", ns + "/limits/system", `{"limits":{"wcu":"1/day"}}`, "", 400, api.Invalid, "reserved"},
		{"a reserved character in a limit", "administer", "PUT", ns + "/limits/system", `{"limits":{"a#b":"1/day"}}`, "", 400, api.Invalid, `limit name "a#b"`},
		{"half of a body", "administer", "PUT", ns + "/entities/e", `{"name":`, "", 400, api.Invalid, "unexpected EOF"},
		{"limits of which one is wrong", "administer", "PUT", ns + "/limits/system", `{"limits":{"a":"1/day","b":"1/month"}}`, "", 400, api.Invalid, "limit b"},
		{"a body of another type", "administer", "PUT", ns + "/entities/e", "name=x", "Content-Type=application/x-www-form-urlencoded", 415, api.MediaType, "application/json"},
		{"a page of another site", "administer", "PUT", ns + "/entities/e", "{}", "Sec-Fetch-Site=cross-site", 403, api.Forbidden, "another site"},
		{"a question that is none", "read", "POST", "/v1/explain", `{"domain":"shop"}`, "", 400, api.Invalid, "at least one entry"},
		{"a top of nothing", "read", "GET", "/v1/top?size=0", "", "", 400, api.Invalid, "1 to 1000"},
		{"usage that ends before it begins", "read", "GET", ns + "/usage?from=2027-01-01T00:00:00Z&to=2026-01-01T00:00:00Z", "", "", 400, api.Invalid, "before it begins"},
		{"a cursor of another list", "read", "GET", ns + "/usage?after=eyJzIjoxfQ", "", "", 400, api.Invalid, "cursor"},
		{"a cursor of the audit", "read", "GET", ns + "/audit?entity=here&after=2026", "", "", 400, api.Invalid, "cursor"},
	} {
		t.Run(test.name, func(t *testing.T) {
			name, value, _ := strings.Cut(test.header, "=")
			header := []string{}
			if name != "" {
				header = append(header, name, value)
			}
			code, answer, head := o.send(t, test.role, test.method, test.path, strings.NewReader(test.body), header...)
			var p api.Problem
			err := json.Unmarshal(answer, &p)
			if err != nil || code != test.status || p.Status != test.status || p.Type != test.kind || !strings.Contains(p.Detail, test.detail) || head.Get("Content-Type") != api.ProblemType {
				t.Errorf("got %d %s %s, want %d %s with %q", code, head.Get("Content-Type"), answer, test.status, test.kind, test.detail)
			}
		})
	}
	if after := o.stored(t); after != before {
		t.Errorf("something is changed; before:\n%s\nafter:\n%s", before, after)
	}
}

// Commands that are refused, with the code that scripts go by. None changes anything.
func TestBadCommands(t *testing.T) {
	o := startOperated(t)
	o.must(t, "set", "entity", "here")
	o.must(t, "set", "limits", "--resource", "r", "rpm=5/day", "--allow-new")
	half := programtest.WriteFile(t, "half.yaml", "manifest: m\nentities: {a: {name: a}}\nlimits: {resources: {r: {rpm: 9/day}, s: {rpm: 5/fortnight}}}\n")
	cut := programtest.WriteFile(t, "cut.yaml", "manifest: m\nentities: {a: {name: a}\n")
	before := o.stored(t)
	for _, test := range []struct {
		args string
		code int
		want string
	}{
		{"get entitys here", command.ExitUsage, `did you mean "entity"?`},
		{"list things", command.ExitUsage, `unknown noun "things"`},
		{"set entity", command.ExitUsage, "needs"},
		{"set limits --resource r rpm", command.ExitUsage, "rpm"},
		{"set limits --resource r rpm=5/fortnight", command.ExitFailure, "a period must be"},
		{"set limits --resource r wcu=5/day", command.ExitFailure, "reserved"},
		{"set limits --resource _default_ rpm=5/day", command.ExitFailure, "name an entity"},
		{"set limits --resource r rpm=9/day --etag v1", command.ExitFailure, "read it again"},
		{"set entity here --parent here", command.ExitFailure, "its own ancestor"},
		{"set entity here --cascade", command.ExitFailure, "parent"},
		{"delete entity here", command.ExitUsage, "--yes"},
		{"delete entity none --yes", command.ExitFailure, "no entity none"},
		{"delete limits --resource none --yes", command.ExitFailure, "none"},
		{"get entity here -n none", command.ExitFailure, "namespace none"},
		{"list entities -n ", command.ExitUsage, "--namespace is empty"},
		{"get namespace none", command.ExitFailure, "never in use"},
		{"reset bucket --entity here --resource r", command.ExitFailure, "none is in use, so a request finds a full one"},
		{"top-up bucket --entity here --resource r many", command.ExitUsage, "many"},
		{"top-up bucket --entity here --resource r 99999999999999999999", command.ExitUsage, "at most 1000000000000000 tokens"},
		{"top-up bucket --entity here --resource r --once= 1", command.ExitUsage, `"--once" flag: it is empty`},
		{"take-out bucket --entity here --resource r --limit= 1", command.ExitUsage, `"--limit" flag: it is empty`},
		{"set limits --entity= --resource r rpm=9/day", command.ExitUsage, `"--entity" flag: it is empty`},
		{"set limits --resource r rpm=9/day --etag=", command.ExitUsage, `"--etag" flag: it is empty`},
		{"delete limits --entity= --resource r --yes", command.ExitUsage, `"--entity" flag: it is empty`},
		{"delete entity here --yes --etag=", command.ExitUsage, `"--etag" flag: it is empty`},
		{"apply -f " + half, command.ExitUsage, "fortnight"},
		{"apply -f " + cut, command.ExitUsage, "cut.yaml"},
		{"apply -f " + cut + ".none", command.ExitUsage, "no such file"},
		{"list usage --from yesterday", command.ExitUsage, "--from"},
		{"list audit --entity a --system", command.ExitUsage, "--system"},
	} {
		t.Run(test.args, func(t *testing.T) {
			code, stdout, stderr := o.run(t, strings.Split(test.args, " ")...)
			if code != test.code || !strings.Contains(stderr, test.want) || stdout != "" {
				t.Errorf("exit code %d, want %d with %q; stdout:\n%s\nstderr:\n%s", code, test.code, test.want, stdout, stderr)
			}
		})
	}
	if after := o.stored(t); after != before {
		t.Errorf("something is changed; before:\n%s\nafter:\n%s", before, after)
	}
}

// zeros is an endless body that counts the bytes read.
type zeros struct{ read atomic.Int64 }

func (z *zeros) Read(p []byte) (int, error) {
	clear(p)
	z.read.Add(int64(len(p)))
	return len(p), nil
}

// A body of 100 MiB is refused as soon as it is too long: neither it nor much memory is used.
func TestLargeBodies(t *testing.T) {
	o := startOperated(t)
	const length = 100 << 20
	for _, test := range []struct {
		role, method, path string
		status             int
	}{
		{"administer", "PUT", "/v1/namespaces/default/entities/e", 413},
		{"administer", "PUT", "/v1/namespaces/default/limits/system", 413},
		{"operate", "POST", "/v1/namespaces/default/buckets/reset", 413},
		{"read", "POST", "/v1/explain", 413},
		{"wrong", "PUT", "/v1/namespaces/default/entities/e", 401},
		{"read", "PUT", "/v1/namespaces/default/entities/e", 403},
	} {
		var body zeros
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		code, answer, _ := o.send(t, test.role, test.method, test.path, io.LimitReader(&body, length))
		runtime.ReadMemStats(&after)
		var p api.Problem
		if err := json.Unmarshal(answer, &p); err != nil || code != test.status || p.Detail == "" {
			t.Errorf("%s %s as %s: %d %s, want %d", test.method, test.path, test.role, code, answer, test.status)
		}
		if read, used := body.read.Load(), after.TotalAlloc-before.TotalAlloc; read > length/10 || used > 8<<20 {
			t.Errorf("%s %s as %s: %d KiB were sent, and %d KiB of memory used", test.method, test.path, test.role, read>>10, used>>10)
		}
	}
}

// Concurrent edits of one record are based on the same read. One of them is made, and
// the record has its content.
func TestConcurrentEdits(t *testing.T) {
	o := startOperated(t)
	o.must(t, "set", "entity", "e", "--name", "first")
	_, _, head := o.send(t, "read", http.MethodGet, "/v1/namespaces/default/entities/e", http.NoBody)
	var all sync.WaitGroup
	codes := make([]int, 12)
	for i := range codes {
		all.Go(func() {
			body := strings.NewReader(`{"name":"` + strconv.Itoa(i) + `"}`)
			codes[i], _, _ = o.send(t, "administer", http.MethodPut, "/v1/namespaces/default/entities/e", body, "If-Match", head.Get("ETag"))
		})
	}
	all.Wait()
	made := -1
	for i, code := range codes {
		switch {
		case code == http.StatusOK && made < 0:
			made = i
		case code != http.StatusPreconditionFailed:
			t.Errorf("edit %d: %d, want 412 of all but one", i, code)
		}
	}
	if got := o.must(t, "get", "entity", "e", "-o", "json"); made < 0 || !strings.Contains(got, `"name": "`+strconv.Itoa(made)+`"`) {
		t.Errorf("edit %d is made, and stored is\n%s", made, got)
	}
	if events := strings.Count(o.must(t, "list", "audit", "--entity", "e"), "entity.put"); events != 2 {
		t.Errorf("%d events, want 2", events)
	}
}
