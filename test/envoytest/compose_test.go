package envoytest_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/test/envoytest"
	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
	"github.com/ratelimit/ratelimit/test/kit/proctest"
)

// composeFile returns a file of examples/compose with changes; each must find its place.
func composeFile(t *testing.T, name string, changes ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "examples", "compose", name))
	if err != nil {
		t.Fatal(err)
	}
	altered := string(text)
	for i := 0; i < len(changes); i += 2 {
		if !strings.Contains(altered, changes[i]) {
			t.Fatalf("%s: has no %q", name, changes[i])
		}
		altered = strings.ReplaceAll(altered, changes[i], changes[i+1])
	}
	return writeRules(t, altered)
}

// The parts of examples/compose fit each other: of twelve requests of a key to two
// replicas on DynamoDB Local, ten are admitted.
func TestCompose(t *testing.T) {
	envoytest.Need(t)
	server := dynamotest.Start(t)
	t.Setenv("AWS_ACCESS_KEY_ID", "local")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "local")
	rules := composeFile(t, "rules/ratelimit.yaml",
		"http://dynamodb:8000", server.URL,
		"table: ratelimit", "table: "+dynamotest.TableName(t),
		"10/minute", "{rate: 1/day, burst: 10}", // the test may take longer than a refill
		"timeout: 200ms", "timeout: 9s")
	first, second := envoytest.StartService(t, rules, "", ""), envoytest.StartService(t, rules, "", "")
	file := composeFile(t, "envoy.yaml", "address: ratelimit,", "address: 127.0.0.1,", "timeout: 0.5s", "timeout: 10s")
	envoy := envoytest.StartEnvoy(t, file, envoytest.Ports{8081: {first.GRPC, second.GRPC}, 9000: {proctest.FreeAddress(t)}})
	for i := range 12 {
		want := http.StatusOK
		if i >= 10 {
			want = http.StatusTooManyRequests
		}
		answer := envoy.Get(t, "/", apiKey("alice"))
		if answer.Code != want {
			t.Errorf("request %d: got %d, want %d", i+1, answer.Code, want)
		}
		if want == http.StatusOK && string(answer.Body) != "admitted\n" {
			t.Errorf("request %d: got %q of the upstream", i+1, answer.Body)
		}
	}
}
