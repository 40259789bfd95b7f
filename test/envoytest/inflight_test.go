package envoytest_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/ratelimit/ratelimit/test/envoytest"
)

// holder is a gateway in front of a server that holds requests to /hold.
type holder struct {
	*envoytest.Envoy

	arrived chan struct{} // one for each held request
	release chan struct{} // closed to answer all held ones
}

// hold begins a request that is held, and waits until the server has it. The returned function ends it as a
// client that goes away.
func (h *holder) hold(t *testing.T) context.CancelFunc {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		response, err := h.Post(ctx, "/hold", "", http.Header{"X-User": {"ada"}})
		if err == nil {
			_ = response.Body.Close()
		}
	}()
	t.Cleanup(func() { cancel(); <-ended })
	select {
	case <-h.arrived:
	case <-ended:
		t.Fatal("a request that the limit has room for: it was not held")
	}
	return cancel
}

// code returns the status of a short request of the user.
func (h *holder) code(t *testing.T) int {
	t.Helper()
	return h.Get(t, "/", http.Header{"X-User": {"ada"}}).Code
}

// Five requests are in flight at a time. One that the client breaks off gives its place back, as does one that
// is answered. A denied one gives back nothing.
func TestInFlightExample(t *testing.T) {
	envoytest.Need(t)
	h := holder{arrived: make(chan struct{}), release: make(chan struct{})}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/hold" {
			return
		}
		select {
		case h.arrived <- struct{}{}:
		case <-r.Context().Done():
		}
		select {
		case <-h.release:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(server.Close)
	service := envoytest.StartService(t, example(t, "../recipes/in-flight.yaml"), "", "")
	h.Envoy = envoytest.StartEnvoy(t, patient(t, example(t, "in-flight.yaml")), envoytest.Ports{servicePort: {service.GRPC}, upstreamPort: {server.Listener.Addr().String()}})

	var breakOff context.CancelFunc
	for range 5 {
		breakOff = h.hold(t)
	}
	for i := range 8 {
		if got := h.code(t); got != http.StatusTooManyRequests {
			t.Fatalf("request %d beside five in flight: got %d, want 429", i+1, got)
		}
	}
	breakOff()
	h.awaitRoom(t, "when one is broken off")
	h.awaitRoom(t, "after a short request")
	close(h.release)
	h.awaitRoom(t, "when all were answered")
}

// awaitRoom waits until a short request passes. An end is reported soon after it.
func (h *holder) awaitRoom(t *testing.T, when string) {
	t.Helper()
	envoytest.Await(t, "there is room "+when, func() error {
		if got := h.code(t); got != http.StatusOK {
			return fmt.Errorf("got %d, want 200", got)
		}
		return nil
	})
}
