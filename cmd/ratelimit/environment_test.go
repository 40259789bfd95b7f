package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/test/kit/proctest"
	"github.com/ratelimit/ratelimit/test/kit/programtest"
)

// drop is the program as a manifest of envoyproxy/ratelimit starts it.
type drop struct {
	t          *testing.T
	log        *proctest.LogBuffer
	http, grpc string // addresses
	greeting   chan string
}

// startAs starts the program with variables and arguments, and does not wait for it.
func startAs(t *testing.T, variables map[string]string, args ...string) *drop {
	t.Helper()
	d := &drop{t: t, log: new(proctest.LogBuffer), greeting: make(chan string, 1)}
	all := map[string]string{"HOST": "127.0.0.1", "PORT": "0", "GRPC_HOST": "127.0.0.1", "GRPC_PORT": "0"}
	maps.Copy(all, variables)
	for name, value := range all {
		t.Setenv(name, value)
	}
	t.Chdir(t.TempDir())
	ctx, cancel := context.WithCancelCause(t.Context())
	out, w := io.Pipe()
	code := make(chan int, 1)
	go func() {
		defer func() { _ = w.Close() }()
		code <- run(ctx, args, w, d.log)
	}()
	go func() {
		lines := bufio.NewScanner(out)
		if lines.Scan() {
			d.greeting <- lines.Text()
		}
		_, _ = io.Copy(io.Discard, out)
	}()
	t.Cleanup(func() {
		cancel(command.ErrInterrupted)
		if got := <-code; got != 0 {
			t.Errorf("exit code %d: %s", got, d.log)
		}
	})
	return d
}

// serves waits until the program listens.
func (d *drop) serves() {
	d.t.Helper()
	select {
	case line := <-d.greeting:
		if _, err := fmt.Sscanf(line, "ratelimit "+command.Version()+" answers gRPC on %s and HTTP on %s", &d.grpc, &d.http); err != nil {
			d.t.Fatalf("greeting %q: %v", line, err)
		}
	case <-time.After(20 * time.Second):
		d.t.Fatalf("the program does not listen: %s", d.log)
	}
}

// get returns the status and the text of a page.
func (d *drop) get(address, path, body string) (int, string) {
	d.t.Helper()
	method := http.MethodGet
	if body != "" {
		method = http.MethodPost
	}
	r, err := http.NewRequestWithContext(d.t.Context(), method, "http://"+address+path, strings.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		d.t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// ask returns the status of a call of a user.
func (d *drop) ask(domain string) int {
	d.t.Helper()
	code, _ := d.get(d.http, "/json", fmt.Sprintf(`{"domain":%q,"descriptors":[{"entries":[{"key":"user","value":"x"}]}]}`, domain))
	return code
}

// ruleFiles writes files below a directory, and returns it.
func ruleFiles(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// oneAnHour is a file with a limit.
func oneAnHour(domain string) string {
	return "domain: " + domain + "\ndescriptors:\n- key: user\n  rate_limit: {unit: hour, requests_per_unit: 1}\n"
}

// The program starts as Istio's sample, Envoy AI Gateway's manifest with a flag of its own, and our image without a
// command start envoyproxy/ratelimit. It has their files, answers, probes, metrics and headers.
func TestStartsAsEnvoyproxyRatelimit(t *testing.T) {
	for name, args := range map[string][]string{"no argument": nil, "a flag of another program": {"--quotaRateLimitServiceAddr=x:1"}, "the image": {"serve"}} {
		t.Run(name, func(t *testing.T) {
			d := startAs(t, map[string]string{
				"RUNTIME_ROOT":         ruleFiles(t, map[string]string{"ratelimit/config/a.yaml": oneAnHour("a"), "ratelimit/config/below/without-ending": oneAnHour("b"), "ratelimit/config/..data": oneAnHour("hidden")}),
				"RUNTIME_SUBDIRECTORY": "ratelimit", "RUNTIME_WATCH_ROOT": "false", "RUNTIME_IGNOREDOTFILES": "true", "LOG_LEVEL": "debug", "LOG_FORMAT": "json",
				"BACKEND_TYPE": "memcache", "MEMCACHE_HOST_PORT": "memcached:11211", "USE_STATSD": "false", "USE_PROMETHEUS": "true", "PROMETHEUS_ADDR": "127.0.0.1:0",
				"LIMIT_RESPONSE_HEADERS_ENABLED": "true", "PROMETHEUS_MAPPER_YAML": "m.yaml",
			}, args...)
			d.serves()
			for domain, want := range map[string][]int{"a": {200, 429}, "b": {200, 429}, "hidden": {200, 200}} {
				if got := []int{d.ask(domain), d.ask(domain)}; !slices.Equal(got, want) {
					t.Errorf("domain %s: got %v, want %v", domain, got, want)
				}
			}
			if code, text := d.get(d.http, "/healthcheck", ""); code != 200 || text != "OK" {
				t.Errorf("/healthcheck: got %d %q", code, text)
			}
			var metrics []string
			eventually(t, "a listener of metrics", func() bool {
				metrics = regexp.MustCompile(`"serving metrics","address":"([^"]+)"`).FindStringSubmatch(d.log.String())
				return metrics != nil
			})
			const hits = `ratelimit_service_rate_limit_total_hits{domain="a",key1="user",key2=""} 2`
			if code, text := d.get(metrics[1], "/metrics", ""); code != 200 || !strings.Contains(text, hits) {
				t.Errorf("metrics: got %d without %s", code, hits)
			}
			for _, want := range []string{"a Redis or Memcached is set, and buckets are in this process all the same", `"setting":"MEMCACHE_HOST_PORT"`, `"names":["PROMETHEUS_MAPPER_YAML"]`} {
				if !strings.Contains(d.log.String(), want) {
					t.Errorf("the log has no %q: %s", want, d.log)
				}
			}
			if warned := strings.Contains(d.log.String(), "quotaRateLimitServiceAddr has no effect"); warned != (len(args) > 0 && args[0] != "serve") {
				t.Errorf("a warning of the flag: %t", warned)
			}
		})
	}
}

// The log says that buckets are in the process where no variable names a store.
func TestTheLogSaysThatThereIsNoStore(t *testing.T) {
	for data, want := range map[string]bool{"": true, t.TempDir(): false} {
		d := startAs(t, map[string]string{"RUNTIME_ROOT": ruleFiles(t, map[string]string{"config/a.yaml": oneAnHour("a")}), "RATELIMIT_DATA": data})
		d.serves()
		if got := strings.Contains(d.log.String(), "no store is set: buckets are in this process"); got != want {
			t.Errorf("RATELIMIT_DATA=%s: the warning %t, want %t: %s", data, got, want, d.log)
		}
	}
}

// What a file of ours sets wins over the variables, and its rules stand beside theirs.
func TestAFileWinsOverTheVariables(t *testing.T) {
	file := programtest.WriteFile(t, "own.yaml", "envoyproxy: {headers: none}\ndrain: 0s\n"+programtest.TwoPerMinute)
	d := startAs(t, map[string]string{
		"RUNTIME_ROOT": ruleFiles(t, map[string]string{"config/a.yaml": oneAnHour("a")}), "LIMIT_RESPONSE_HEADERS_ENABLED": "true",
	}, "serve", "--config", file)
	d.serves()
	if code, text := d.get(d.http, "/json", `{"domain":"a","descriptors":[{"entries":[{"key":"user","value":"x"}]}]}`); code != 200 || strings.Contains(text, "responseHeadersToAdd") || !strings.Contains(text, `"requestsPerUnit":1`) {
		t.Errorf("a domain of the variables: got %d %s", code, text)
	}
	for _, want := range []int{200, 200, 429} {
		if got := d.ask("shop"); got != want {
			t.Errorf("a domain of the file: got %d, want %d", got, want)
		}
	}
}

// Wrong values are refused with the name of the variable, and a directory that is missing too.
func TestWrongVariables(t *testing.T) {
	for name, test := range map[string]struct {
		variables map[string]string
		want      []string
	}{
		"values": {
			map[string]string{"RUNTIME_ROOT": "/nowhere", "PORT": "eighty", "USE_PROMETHEUS": "yes", "LOG_LEVEL": "loud", "GRPC_MAX_CONNECTION_AGE": "1 day"},
			[]string{`PORT: "eighty" must be a port`, `USE_PROMETHEUS: "yes" must be true or false`, `LOG_LEVEL: "loud" must be trace`, `GRPC_MAX_CONNECTION_AGE: "1 day" must be a duration`},
		},
		"no directory": {map[string]string{"RUNTIME_ROOT": "/nowhere"}, []string{"/nowhere/config", "note: the environment is that of envoyproxy/ratelimit, by RUNTIME_ROOT"}},
		"the type":     {map[string]string{"CONFIG_TYPE": "XDS"}, []string{`CONFIG_TYPE: "XDS" must be FILE or GRPC_XDS_SOTW`}},
	} {
		t.Run(name, func(t *testing.T) {
			for variable, value := range test.variables {
				t.Setenv(variable, value)
			}
			t.Chdir(t.TempDir())
			code, _, stderr := output(t)
			for _, want := range test.want {
				if code == 0 || !strings.Contains(stderr, want) {
					t.Errorf("got %d with %q, want %q", code, stderr, want)
				}
			}
		})
	}
}

// Without those variables the program alone prints its help, whatever else the environment has.
func TestHelpWithoutVariables(t *testing.T) {
	t.Setenv("PORT", "8080")
	t.Setenv("HOST", "localhost")
	if code, stdout, _ := output(t); code != 0 || !strings.Contains(stdout, "Usage:") {
		t.Errorf("got %d with %q", code, stdout)
	}
}
