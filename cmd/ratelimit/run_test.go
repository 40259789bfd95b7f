package main

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/test/kit/proctest"
	"github.com/ratelimit/ratelimit/test/kit/programtest"
)

// output runs the program to its end.
func output(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), args, &out, &errs)
	return code, out.String(), errs.String()
}

// greeter returns the address of a server that answers, and not by HTTP.
func greeter(t *testing.T) string {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := lis.Accept()
			if err != nil {
				return
			}
			_, _ = http.ReadRequest(bufio.NewReader(conn))
			_, _ = io.WriteString(conn, "no HTTP\r\n\r\n")
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() { _ = lis.Close(); <-ended })
	return lis.Addr().String()
}

func TestCommandLine(t *testing.T) {
	good, bad := programtest.WriteFile(t, "good.yaml", programtest.TwoPerMinute), programtest.WriteFile(t, "bad.yaml", `
limits: {system: {rpm: 2/fortnight}}
domain: x
domains:
- domain: shop
  rules:
  - {match: {user: "*"}, entity: "user/{usr}", resource: api, consume: {rpm: 1}}
`)
	local := programtest.WriteFile(t, "local.yaml", "store: {type: dynamodb, dynamodb: {endpoint: 'http://127.0.0.1:1', create_table: true}}"+programtest.TwoPerMinute)
	leased := programtest.WriteFile(t, "leased.yaml", strings.Replace(programtest.TwoPerMinute, "consume:", "lease: {max: 5, for: 100ms}, consume:", 1))
	secured := programtest.WriteFile(t, "secured.yaml", "server: {grpc: {tls: {cert: nowhere.crt, key: nowhere.key, client_ca: nowhere.ca}}, http: {tls: {cert: nowhere.crt, key: nowhere.key}}}"+programtest.TwoPerMinute)
	twice := programtest.WriteFile(t, "twice.yaml", "server: {http: {address: '127.0.0.1:8081'}}"+programtest.TwoPerMinute)
	shadow := programtest.WriteFile(t, "shadow.yaml", strings.Replace(programtest.TwoPerMinute, "rules:\n", "rules:\n  - {name: trial, mode: shadow, match: {user: '*'}, entity: '{user}', resource: api, limits: {x: 1/minute}, consume: {x: 2}}\n", 1))
	tree := programtest.WriteFile(t, "tree.yaml", "domain: tree\ndescriptors: [{key: user, shadow_mode: true, rate_limit: {unit: minute, requests_per_unit: 7}}]\n")
	one := programtest.WriteFile(t, "one.yaml", "domain: one\nrules: [{match: {a: b}, unlimited: true}]\n")
	envoyproxy := programtest.WriteFile(t, "envoyproxy.yaml", "domain: one\ndescriptors: [{key: a, rate_limit: {unit: second, requests_per_unit: 1}}]\n")
	empty := programtest.WriteFile(t, "empty.yaml", "# nothing yet\n")
	nothing, limits := t.TempDir(), programtest.WriteFile(t, "limits.yaml", operatorLimits)
	host, port, _ := net.SplitHostPort(greeter(t)) // it is an address
	_, free, _ := net.SplitHostPort(proctest.FreeAddress(t))
	strict := programtest.WriteFile(t, "strict.yaml", "unmatched: deny\n"+programtest.TwoPerMinute)
	listed := programtest.WriteFile(t, "listed.yaml", `
domains:
- domain: shop
  rules: [{match: {item: "*"}, entity: all, resource: "{item}", resources: [book], limits: {rpm: 2/minute}, consume: {rpm: 1}}]
`)
	for _, test := range []struct {
		name           string
		args           []string
		code           int
		stdout, stderr []string // parts
	}{
		{"version", []string{"version"}, 0, []string{"ratelimit ", " go1."}, nil},
		{"help", []string{"--help"}, 0, []string{"serve", "check", "explain", "version"}, nil},
		{"help of serve", []string{"serve", "--help"}, 0, []string{"--config", "--rules", "--grpc-address", "--http-address", "SIGTERM"}, nil},
		{"unknown command", []string{"serv"}, 2, nil, []string{`unknown command "serv"`, "Did you mean this?", "serve"}},
		{"an argument that is none", []string{"backup", "there"}, 2, nil, []string{`ratelimit backup takes flags only, not "there"; a configuration file is named with --config`}},
		{"no socket", []string{"backup", "--data", filepath.Join(filepath.Dir(good), "none")}, 3, nil, []string{"no service answers at", "none/admin.sock: start it"}},
		{"an address that does not speak HTTP", []string{"backup", "--server", "http://" + greeter(t)}, 3, nil, []string{"does not speak HTTP", "gRPC"}},
		{"check", []string{"check", "--config", good}, 0, []string{"ok: 1 file, 1 domain, 1 rule, 0 warnings"}, nil},
		{"check of the shipped file", []string{"check", "--demo", "--strict"}, 0, []string{"8 rules, 0 warnings"}, nil},
		{"nothing to serve", []string{"serve"}, 2, nil, []string{"--config", "--demo"}},
		{"nothing to check", []string{"check"}, 2, nil, []string{"--config", "--demo"}},
		{"nothing to explain", []string{"explain", "shop", "user=ada"}, 2, nil, []string{"--config", "--demo"}},
		{"a demo of a file", []string{"serve", "--demo", "-c", good}, 2, nil, []string{"--demo", "leave one of them out"}},
		{"rules bring no demo", []string{"check", "--rules", one}, 0, []string{"ok: 1 file, 1 domain, 1 rule, 0 warnings"}, nil},
		{"rules beside the demo", []string{"check", "--demo", "--rules", one}, 0, []string{"ok: 2 files, 2 domains"}, nil},
		{"no domains", []string{"check", "-c", empty}, 2, nil, []string{"empty.yaml: has no domain"}},
		{"a file for convert without a domain", []string{"convert", empty}, 2, nil, []string{"empty.yaml: has no domain: nothing would be limited"}},
		{"a file of limitador without a limit", []string{"limitador-server", "--validate", empty}, 2, nil, []string{"empty.yaml: has no domain: nothing would be limited"}},
		{"a port of limitador that is taken", []string{"limitador-server", "--http-ip", host, "--http-port", port, "--rls-ip", host, "--rls-port", free, limits}, 1, nil, []string{"ratelimit: --http-ip and --http-port, or HTTP_API_HOST and HTTP_API_PORT: listen"}},
		{"a directory without a file", []string{"convert", nothing}, 2, nil, []string{nothing + ": leads to no file: nothing would be limited"}},
		{"a directory without a YAML file", []string{"check", "--rules", nothing}, 2, nil, []string{nothing + ": leads to no file whose name ends in .yaml or .yml"}},
		{"check of a file of envoyproxy", []string{"check", "--rules", envoyproxy}, 0, []string{"ok: 1 file, 1 domain, 1 rule, 0 warnings"}, nil},
		{"no domains to serve", []string{"serve", "-c", empty}, 2, nil, []string{"empty.yaml: has no domain"}},
		{"a file of envoyproxy", []string{"check", "-c", envoyproxy}, 2, nil, []string{"envoyproxy.yaml:1: is a file of envoyproxy/ratelimit", "--rules", "include"}},
		{"the file of one domain", []string{"check", "-c", one}, 2, nil, []string{"one.yaml:1: is the file of one domain", "--rules", "include"}},
		{"every mistake at once", []string{"check", "-c", bad}, 2, nil, []string{
			"bad.yaml:2: limits.system.rpm", "bad.yaml:3: domain", "bad.yaml:7: domains[0].rules[0].entity", "usr",
		}},
		{"check of TLS files that are missing", []string{"check", "-c", secured}, 0, []string{"1 rule, 3 warnings"}, []string{
			"server.grpc.tls.cert: no such file", "server.grpc.tls.client_ca: no such file", "server.http.tls.cert: no such file", "does not start",
		}},
		{"strict check of TLS files that are missing", []string{"check", "--strict", "-c", secured}, 2, nil, []string{"3 warnings, and --strict allows none"}},
		{"check of two listeners on one address", []string{"check", "-c", twice}, 2, nil, []string{"twice.yaml:1: server.http.address: is 127.0.0.1:8081", "another port"}},
		{"no such file", []string{"check", "-c", "nowhere.yaml"}, 2, nil, []string{"nowhere.yaml"}},
		{"serve with a wrong file", []string{"serve", "-c", bad}, 2, nil, []string{"limits.system.rpm"}},
		{"a store that is not there", []string{"serve", "--demo", "--store", "redis"}, 2, nil, []string{`--store is "redis"`, "embedded, dynamodb or valkey"}},
		{"a table without a store", []string{"serve", "--demo", "--table", "limits"}, 2, nil, []string{"--table is for the store dynamodb", "add --store dynamodb"}},
		{"a wrong table", []string{"serve", "--demo", "--store", "dynamodb", "--table", "a b"}, 2, nil, []string{"store.dynamodb.table", `"a b"`}},
		{"a wrong endpoint", []string{"serve", "--demo", "--store", "dynamodb", "--endpoint", "localhost:8000"}, 2, nil, []string{"store.dynamodb.endpoint", "http://127.0.0.1:8000"}},
		{"a table to create on AWS", []string{"serve", "-c", local, "--endpoint", "https://dynamodb.eu-central-1.amazonaws.com"}, 2, nil, []string{"store.dynamodb.create_table", "local endpoint"}},
		{"check of a DynamoDB store that is not there", []string{"check", "-c", local}, 0, []string{"ok: 1 file"}, nil},
		{"a directory for a table", []string{"serve", "-c", local, "--data", "x"}, 2, nil, []string{"--data is for the store embedded", "--store embedded"}},
		{"a directory without a parent", []string{"serve", "-c", good, "--data", filepath.Join(filepath.Dir(good), "a", "b")}, 1, nil, []string{"store.embedded.data, or --data: ", "make it, or mount it"}},
		{"an address without a port", []string{"serve", "--demo", "--grpc-address", "localhost"}, 2, nil, []string{"--grpc-address", "host:port"}},
		{"explain", []string{"explain", "-c", good, "shop", "user=ada"}, 0, []string{"rule     users", "user/ada", "2/minute", "system (file)", "admitted"}, nil},
		{"explain a lease", []string{"explain", "-c", leased, "shop", "user=ada"}, 0, []string{"lease    {max: 5, for: 100ms}"}, nil},
		{"check of a lease of memory", []string{"check", "-c", leased}, 0, []string{"1 warning"}, []string{"domains[0].rules[0].lease: is not used", "embedded"}},
		{"explain a miss", []string{"explain", "-c", good, "shop", "usr=ada"}, 0, []string{"(none matches)", "nearest  users: key user missing; has key usr", "did you mean user?"}, nil},
		{"explain a mistyped domain", []string{"explain", "-c", good, "shpo", "user=ada"}, 0, []string{"no such domain", `did you mean "shop"?`, "domains  shop"}, nil},
		{"explain a shadow rule", []string{"explain", "-c", shadow, "shop", "user=ada"}, 0, []string{"shadow rule  trial: would deny", "1/minute", "users"}, nil},
		{"explain shadow_mode", []string{"explain", "-c", good, "--rules", tree, "tree", "user=ada"}, 0, []string{"shadow rule  user: would admit", "outcome      shadow", "7/minute"}, nil},
		{"explain without a domain", []string{"explain", "-c", good, "user=ada", "x=y"}, 0, []string{"the domain comes first"}, nil},
		{"explain an unknown domain", []string{"explain", "-c", good, "shap", "user=ada"}, 0, []string{"no such domain", "unmatched"}, nil},
		{"explain a resource that is not listed", []string{"explain", "-c", listed, "shop", "item="}, 0, []string{`resource  "" is not in the list of resources`, "other"}, nil},
		{"explain nothing", []string{"explain", "-c", good, "shop"}, 2, nil, []string{"KEY=VALUE"}},
		{"unknown flag", []string{"serve", "--prot", "1"}, 2, nil, []string{"--prot", "see ratelimit serve --help"}},
		{"explain too much", []string{"explain", "-c", good, "--hits", "3", "shop", "user=ada"}, 0, []string{"denied", "false"}, nil},
		{"explain a domain that is denied", []string{"explain", "-c", strict, "shap", "user=ada"}, 0, []string{"unmatched", "denied"}, nil},
		{"explain bytes to a server", []string{"explain", "--server", "http://127.0.0.1:1", "shop", "user=k\xff"}, 2, nil, []string{`user=k\xff`, "UTF-8"}},
		{"explain as JSON", []string{"explain", "-c", good, "-o", "json", "shop", "user=ada"}, 0, []string{`"rule": "users"`, `"available": "2"`}, nil},
		{"explain what is no entry", []string{"explain", "-c", good, "shop", "ada"}, 2, nil, []string{`"ada" is not an entry`, "KEY=VALUE"}},
		{"explain in another form", []string{"explain", "-c", good, "-o", "xml", "shop", "user=ada"}, 2, nil, []string{"table, wide or json"}},
		{"explain a call that is none", []string{"explain", "-c", good, "-f", bad}, 2, nil, []string{"bad.yaml: not a RateLimitRequest in JSON"}},
		{"explain a file that is not there", []string{"explain", "-c", good, "-f", "nowhere.json"}, 2, nil, []string{"nowhere.json: no such file"}},
		{"explain a file and a descriptor", []string{"explain", "-c", good, "-f", bad, "shop"}, 2, nil, []string{"-f has the whole call"}},
		{"watch a file", []string{"explain", "-c", good, "--watch", "shop", "user=ada"}, 2, nil, []string{"--server or --context"}},
		{"explain by nobody", []string{"explain", "--server", "http://127.0.0.1:1", "shop", "user=ada"}, 3, nil, []string{"asking the service"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			code, stdout, stderr := output(t, test.args...)
			if code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			for _, want := range test.stdout {
				if !strings.Contains(stdout, want) {
					t.Errorf("stdout lacks %q:\n%s", want, stdout)
				}
			}
			for _, want := range test.stderr {
				if !strings.Contains(stderr, want) {
					t.Errorf("stderr lacks %q:\n%s", want, stderr)
				}
			}
		})
	}
}

// Where no file is named, ratelimit.yaml of the working directory is read.
func TestDefaultFile(t *testing.T) {
	t.Chdir(filepath.Dir(programtest.WriteFile(t, command.DefaultFile, programtest.TwoPerMinute)))
	for _, args := range [][]string{{"check"}, {"explain", "shop", "user=ada"}} {
		if code, stdout, stderr := output(t, args...); code != 0 || !strings.Contains(stdout, "1 domain") && !strings.Contains(stdout, "2/minute") {
			t.Errorf("%v: exit code %d\n%s%s", args, code, stdout, stderr)
		}
	}
	r := start(t)
	if code, a := r.ask(t, "ada"); code != http.StatusOK || a.Statuses[0].CurrentLimit.RequestsPerUnit != 2 {
		t.Errorf("serve: got %d, %+v", code, a)
	}
}
