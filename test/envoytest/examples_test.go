package envoytest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/test/envoytest"
)

// admitUntilDenied sends requests until one is denied, and checks that as many
// were admitted as the limit allows in the time that they took.
func admitUntilDenied(t *testing.T, envoy *envoytest.Envoy, path, key string, burst int, oneMore time.Duration) envoytest.Answer {
	t.Helper()
	start := time.Now()
	for admitted := 0; ; admitted++ {
		response := envoy.Get(t, path, apiKey(key))
		most := burst + int(time.Since(start)/oneMore)
		switch {
		case response.Code == http.StatusTooManyRequests:
			if admitted < burst {
				t.Fatalf("%s with key %s: denied after %d requests, want %d admitted", path, key, admitted, burst)
			}
			return response
		case response.Code != http.StatusOK:
			t.Fatalf("%s with key %s: got %d, want 200 or 429", path, key, response.Code)
		case admitted >= most:
			t.Fatalf("%s with key %s: admitted %d requests in %v, want at most %d", path, key, admitted+1, time.Since(start), most)
		}
	}
}

// wantFiveForEachKey checks the limit of basic.yaml and failure-mode-deny.yaml.
func wantFiveForEachKey(t *testing.T, envoy *envoytest.Envoy) {
	t.Helper()
	denied := admitUntilDenied(t, envoy, "/", "alice", 5, 2*time.Second)
	if got := number(t, denied, "retry-after"); got < 1 || got > 2 {
		t.Errorf("denied: got retry-after %d, want 1 or 2", got)
	}
	if got := number(t, denied, "x-ratelimit-remaining"); got != 0 {
		t.Errorf("denied: got x-ratelimit-remaining %d, want 0", got)
	}
	other := envoy.Get(t, "/", apiKey("bob"))
	if got := number(t, other, "x-ratelimit-remaining"); other.Code != http.StatusOK || got != 4 {
		t.Errorf("another key: got %d with %d remaining, want 200 with 4", other.Code, got)
	}
}

func TestBasicExample(t *testing.T) {
	envoytest.Need(t)
	envoy, service := startAll(t, example(t, "basic.yaml"), example(t, "ratelimit.yaml"))
	wantFiveForEachKey(t, envoy)

	keyless := envoy.Get(t, "/", nil)
	if got := keyless.Header.Values("x-ratelimit-limit"); keyless.Code != http.StatusOK || got != nil {
		t.Errorf("without a key: got %d and x-ratelimit-limit %q, want 200 and none", keyless.Code, got)
	}

	service.Kill()
	if response := envoy.Get(t, "/", apiKey("alice")); response.Code != http.StatusOK {
		t.Errorf("without a service: got %d, want 200", response.Code)
	}
	if got := envoy.Stats(t, "cluster.upstream.ratelimit.")["cluster.upstream.ratelimit.failure_mode_allowed"]; got != 1 {
		t.Errorf("without a service: Envoy counted %d requests let pass, want 1", got)
	}
}

// A deny list has a status and a body of its own, an allow list admits whole calls, and a limit answers in the
// shape of OpenAI.
func TestDenyExample(t *testing.T) {
	envoytest.Need(t)
	envoy, _ := startAll(t, patient(t, example(t, "deny.yaml")), example(t, "ratelimit.yaml"))
	for _, key := range []string{"mallory", "test-7"} {
		if got := envoy.Get(t, "/", apiKey(key)); got.Code != http.StatusForbidden || string(got.Body) != "This key is closed." || !strings.HasPrefix(got.Header.Get("content-type"), "text/plain") {
			t.Errorf("key %s: got %d %q of type %q, want 403", key, got.Code, got.Body, got.Header.Get("content-type"))
		}
	}
	for i := range 10 {
		if got := envoy.Get(t, "/status", apiKey("mallory")); got.Code != http.StatusOK {
			t.Fatalf("an exempt call, %d: got %d, want 200", i+1, got.Code)
		}
	}
	denied := admitUntilDenied(t, envoy, "/", "alice", 5, 2*time.Second)
	var body struct {
		Error struct {
			Message string `json:"message"`
			Code    string `json:"code"`
		} `json:"error"`
	}
	if err := json.Unmarshal(denied.Body, &body); err != nil || body.Error.Code != "rate_limit_exceeded" || !strings.Contains(body.Error.Message, "requests") {
		t.Errorf("a limit: got the body %q, %v", denied.Body, err)
	}
	if got := denied.Header.Get("content-type"); got != "application/json" {
		t.Errorf("a limit: got the content type %q", got)
	}
}

func TestFailureModeDenyExample(t *testing.T) {
	envoytest.Need(t)
	envoy, service := startAll(t, example(t, "failure-mode-deny.yaml"), example(t, "ratelimit.yaml"))
	wantFiveForEachKey(t, envoy)

	service.Kill()
	if response := envoy.Get(t, "/", apiKey("bob")); response.Code != http.StatusInternalServerError {
		t.Errorf("without a service: got %d, want 500", response.Code)
	}
}

// Both limits must admit, and a request that one of them denies takes nothing from
// the other.
func TestTwoDescriptorsExample(t *testing.T) {
	envoytest.Need(t)
	envoy, service := startAll(t, example(t, "two-descriptors.yaml"), example(t, "ratelimit.yaml"))
	look := newLooker(t, service)
	start := time.Now()

	admitUntilDenied(t, envoy, "/v1/chat", "greedy", 5, 2*time.Second)
	for range 30 {
		envoy.Get(t, "/v1/chat", apiKey("greedy"))
	}
	left := int(look.remaining(t, "two-descriptors", "route", "v1"))
	if refilled := int(time.Since(start) / time.Second); left < 15-refilled || left > 15+refilled {
		t.Errorf("all keys, after 5 admitted and 30 denied requests of one: got %d left, want 15 (± %d by refill)", left, refilled)
	}

	var last string
	response := envoytest.Answer{Code: http.StatusOK}
	for i := 0; response.Code == http.StatusOK; i++ {
		last = fmt.Sprintf("key-%d", i)
		response = envoy.Get(t, "/v1/chat", apiKey(last))
	}
	if response.Code != http.StatusTooManyRequests {
		t.Fatalf("when all keys have used up theirs: got %d, want 429", response.Code)
	}
	if got := look.remaining(t, "two-descriptors", "api_key", last); got != 5 {
		t.Errorf("key denied by the limit of all keys: got %d left, want 5", got)
	}
	if response := envoy.Get(t, "/other", apiKey(last)); response.Code != http.StatusOK {
		t.Errorf("a path without descriptors: got %d, want 200", response.Code)
	}
}

// started finds the examples that tests start.
var started = regexp.MustCompile(`(?:example|startGateway\w*)\(t, [^)\n]*\)`)

// Every file of the folder is started by a test.
func TestEveryExampleIsStarted(t *testing.T) {
	var calls strings.Builder
	tests, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range tests {
		text, err := os.ReadFile(test)
		if err != nil {
			t.Fatal(err)
		}
		for _, call := range started.FindAll(text, -1) {
			calls.Write(call)
		}
	}
	files, err := filepath.Glob(example(t, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 4 {
		t.Fatalf("files in examples/envoy: got %d, want more", len(files))
	}
	for _, file := range files {
		if name := filepath.Base(file); !strings.Contains(calls.String(), `"`+name+`"`) {
			t.Errorf("%s: no test starts it", name)
		}
	}
}
