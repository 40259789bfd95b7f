package envoytest_test

import (
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/test/envoytest"
)

// Envoy has the limits of Kuadrant's file from the program as the image starts it: each user has a bucket.
func TestKuadrantExample(t *testing.T) {
	envoytest.Need(t)
	folder := filepath.Join("..", "..", "examples", "kuadrant")
	g := startGatewayWith(t, filepath.Join(folder, "envoy.yaml"), envoytest.StartLimitador(t, filepath.Join(folder, "limits.yaml")))
	user := func(name string) http.Header { return http.Header{"X-User": {name}} }
	start, admitted := time.Now(), 0
	for range 12 {
		answer := g.envoy.Get(t, "/", user("ada"))
		if answer.Code == http.StatusOK {
			admitted++
		} else if answer.Code != http.StatusTooManyRequests {
			t.Fatalf("got %d", answer.Code)
		}
		for _, name := range []string{"retry-after", "x-ratelimit-limit"} {
			if got := answer.Header.Values(name); got != nil {
				t.Errorf("%s: %q, and headers are off", name, got)
			}
		}
	}
	if most := 5 + int(time.Since(start)/(12*time.Second)) + 1; admitted < 5 || admitted > most {
		t.Errorf("admitted %d of 5 a minute", admitted)
	}
	if answer := g.envoy.Get(t, "/", user("bob")); answer.Code != http.StatusOK {
		t.Errorf("another user: %d", answer.Code)
	}
	if answer := g.envoy.Get(t, "/", nil); answer.Code != http.StatusOK {
		t.Errorf("a call without the variable: %d", answer.Code)
	}
}
