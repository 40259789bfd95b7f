package envoytest_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/test/envoytest"
)

// Three requests, and no more while a test runs.
const threeForeach = `
domains:
- domain: basic
  rules:
  - match: {api_key: "*"}
    entity: "key/{api_key}"
    resource: http
    limits: {requests: 3/day}
    consume: {requests: hits}
`

// Keys of any bytes and length are limited like any other, each on its own. They
// are sent in rounds, so that one that drained another would be seen.
func TestHostileKeys(t *testing.T) {
	envoytest.Need(t)
	envoy, _ := startAll(t, example(t, "basic.yaml"), writeRules(t, threeForeach))
	long := strings.Repeat("a", 3<<10)
	keys := []string{
		"k", "k\xff", "k\xfe", "k\xff\xff", "\xff", "k\ufffd", "K", "k%FF", "k/", "k%2F", "k#x", `k\xff`, "key/k",
		"{api_key}", "*", "e\u0301", "\u00e9", long, long + "b", long + "\xff", long + "\xfe",
	}
	for round := range 5 {
		want := http.StatusOK
		if round >= 3 {
			want = http.StatusTooManyRequests
		}
		for _, key := range keys {
			if got := rawGet(t, envoy, key); got != want {
				t.Errorf("round %d, key %.20q of %d bytes: got %d, want %d", round, key, len(key), got, want)
			}
		}
	}
	wantNothingLost(t, envoy, int64(5*len(keys)))
}

// rawGet sends a GET with an API key as it stands, which Go's own client refuses
// for some, and returns the status code.
func rawGet(t *testing.T, envoy *envoytest.Envoy, key string) int {
	t.Helper()
	conn, err := net.DialTimeout("tcp", envoy.Address, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(conn, "GET / HTTP/1.1\r\nhost: test\r\nconnection: close\r\nx-api-key: %s\r\n\r\n", key); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("answer to key %.20q: %v", key, err)
	}
	_ = response.Body.Close()
	return response.StatusCode
}
