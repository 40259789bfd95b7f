package rls_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"testing"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/rls"
)

// wireOf is a call of several descriptors with several empty entries each.
func wireOf(descriptors, entries int) []byte {
	one := bytes.Repeat(protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), nil), entries)
	wire := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), "llm")
	for range descriptors {
		wire = protowire.AppendBytes(protowire.AppendTag(wire, 2, protowire.BytesType), one)
	}
	return wire
}

// No gateway sends such a call by itself, but a client might make it. It is denied under every
// policy, as an error would let it pass.
func TestTooLargeIsDenied(t *testing.T) {
	e := newEnv(t, func(c *rls.Config) { c.OnUnavailable = limiter.Allow })
	tests := []struct {
		name   string
		wire   []byte
		denied bool
	}{
		{"the most entries of a descriptor", wireOf(1, rls.MaxEntries), false},
		{"one more", wireOf(1, rls.MaxEntries+1), true},
		{"the most descriptors", wireOf(rls.MaxDescriptors, 1), false},
		{"one more descriptor", wireOf(rls.MaxDescriptors+1, 1), true},
		{"the most entries of a call", wireOf(rls.MaxCallEntries/512, 512), false},
		{"one more of a call", wireOf(rls.MaxCallEntries/512+1, 512), true},
		{"a value that is too long", rawCall("llm", "api_key", strings.Repeat("v", rls.MaxMessage), "model", "m"), true},
		{"the largest message", wireOf(1, (rls.MaxReceived-100)/2), true},
	}
	for _, tt := range tests {
		got, err := e.askRaw(t, tt.wire)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		denied := got.GetOverallCode() == rlsv3.RateLimitResponse_OVER_LIMIT
		if reason := got.GetDynamicMetadata().AsMap()["reason"]; denied != tt.denied || denied && reason != "too_large" {
			t.Errorf("%s: got %v for %v, want denied %t", tt.name, got.GetOverallCode(), reason, tt.denied)
		}
	}
}

// Entries that are empty on the wire take little memory.
func TestEmptyEntriesTakeNoMemory(t *testing.T) {
	handler := newEnv(t, nil).service
	for name, wire := range map[string][]byte{"16 MiB": wireOf(1, 8<<20-100), "in many descriptors": wireOf(500, 1000)} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if err := rls.AnswerWire(handler, t.Context(), wire); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > 32<<20 {
			t.Errorf("%s: %d MiB are allocated for it, want 32 at most", name, got>>20)
		}
	}
}

func TestLargeJSONIsDenied(t *testing.T) {
	handler := newEnv(t, func(c *rls.Config) { c.OnUnavailable = limiter.Allow }).service.JSONHandler()
	many := func(n int) string {
		return fmt.Sprintf(`{"domain":"llm","descriptors":[{"entries":[%s{}]}]}`, strings.Repeat("{},", n-1))
	}
	for name, body := range map[string]string{
		"a long value": `{"domain":"` + strings.Repeat("x", rls.MaxJSON) + `"}`,
		"many entries": many(rls.MaxEntries + 1),
		"the most":     many(rls.MaxJSON / 4),
	} {
		w := httptest.NewRecorder()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/json", strings.NewReader(body)))
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > 8<<20 { // the text grows to 1 MiB by steps
			t.Errorf("%s: %d MiB are allocated for it, want 8 at most", name, got>>20)
		}
		if w.Code != http.StatusTooManyRequests || !strings.Contains(w.Body.String(), "too_large") {
			t.Errorf("%s: got %d %.200s, want 429 for too_large", name, w.Code, w.Body)
		}
	}
}

// Large messages on their way have a bound together, which does not block small ones.
func TestBytesInFlight(t *testing.T) {
	g := &gate{entered: make(chan struct{}), open: make(chan struct{})}
	large := rawCall("llm", "api_key", strings.Repeat("v", 100_000), "model", "m")
	e := newEnv(t, func(c *rls.Config) {
		g.Decider = newLimiter(t, c.Now)
		c.Decider, c.MaxBytes = g, int64(len(large))
	})
	codes := make(chan rlsv3.RateLimitResponse_Code, 2)
	ask := func(wire []byte) {
		got, err := e.askRaw(t, wire)
		if err != nil {
			t.Error(err)
		}
		codes <- got.GetOverallCode()
	}
	go ask(large)
	<-g.entered
	ask(large)
	if got := <-codes; got != rlsv3.RateLimitResponse_OVER_LIMIT {
		t.Errorf("a second large message: got %v, want OVER_LIMIT", got)
	}
	go ask(rawCall("llm", "api_key", "small", "model", "m"))
	<-g.entered
	close(g.open)
	for range 2 {
		if got := <-codes; got != rlsv3.RateLimitResponse_OK {
			t.Errorf("got %v, want OK", got)
		}
	}
}

// The bounds in the documentation are those of the program.
func TestBoundsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/guarantees.md")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(strings.Join(strings.Fields(string(page)), " "), ",", "")
	for _, want := range []string{
		fmt.Sprintf("more than %d MiB %d descriptors %d entries in one of them or %d in all", rls.MaxMessage>>20, rls.MaxDescriptors, rls.MaxEntries, rls.MaxCallEntries),
		fmt.Sprintf("When calls of %d MiB are in hand", rls.DefaultMaxBytes>>20),
		fmt.Sprintf("Above %d MiB gRPC", rls.MaxReceived>>20),
		fmt.Sprintf("%d times", rls.MaxReceived/(60<<10)),
	} {
		if !strings.Contains(text, want) {
			t.Errorf("docs/guarantees.md does not say: %s", want)
		}
	}
}
