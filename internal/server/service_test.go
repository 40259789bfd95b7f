package server

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/test/kit/proctest"
	"github.com/ratelimit/ratelimit/test/kit/programtest"
)

// listening returns a service that listens on free ports and does not run yet.
func listening(t *testing.T, log *proctest.LogBuffer) *Service {
	t.Helper()
	cfg, err := config.Load(programtest.WriteFile(t, "c.yaml", programtest.TwoPerMinute), config.Options{})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Server.GRPC.Address, cfg.Server.HTTP.Address = "127.0.0.1:0", "127.0.0.1:0"
	s, err := New(t.Context(), cfg, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.listen(t.Context(), ownListenKeys()); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStoppedBeforeItBegan(t *testing.T) {
	for range 20 { // whichever goroutine is first
		s := listening(t, new(proctest.LogBuffer))
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(command.ErrInterrupted)
		if err := s.run(ctx, "", config.Options{Demo: true}, nil); err != nil {
			t.Fatal(err)
		}
		if s.health.State().Ready {
			t.Fatal("it says that it is ready after its end")
		}
	}
}

// A stream that never ends holds up the gRPC side; the HTTP side has time of its own.
func TestDrainOfOpenStreams(t *testing.T) {
	log := new(proctest.LogBuffer)
	s := listening(t, log)
	s.quiet = 500 * time.Millisecond
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.run(ctx, "", config.Options{Demo: true}, nil) }()

	watch, err := grpc_health_v1.NewHealthClient(programtest.DialPlain(t, s.grpc.listener.Addr().String())).Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := watch.Recv(); err != nil {
		t.Fatal(err)
	}
	// A request whose body has only begun.
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.http.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	body := `{"domain":"shop","descriptors":[{"entries":[{"key":"user","value":"ada"}]}]}`
	if _, err := fmt.Fprintf(conn, "POST /json HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", len(body)); err != nil {
		t.Fatal(err)
	}
	answers := bufio.NewReader(conn)
	if line, err := answers.ReadString('\n'); err != nil || !strings.Contains(line, "100 Continue") {
		t.Fatalf("got %q, %v", line, err)
	}
	if _, err := answers.ReadString('\n'); err != nil { // the empty line
		t.Fatal(err)
	}

	cancel(command.ErrInterrupted)
	for err = nil; err == nil; { // NOT_SERVING, then the end
		_, err = watch.Recv()
	}
	if _, err := conn.Write([]byte(body)); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(answers, nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if err := <-ended; err != nil || resp.StatusCode != http.StatusOK || strings.Contains(log.String(), "cut") {
		t.Errorf("status %d, error %v, log:\n%s", resp.StatusCode, err, log)
	}
}
