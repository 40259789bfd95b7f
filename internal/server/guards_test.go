package server

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	rlsv3common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/internal/server/guard"
	"github.com/ratelimit/ratelimit/test/kit/programtest"
	"github.com/ratelimit/ratelimit/test/kit/rawgrpc"
)

// inBubble serves gRPC within a bubble, where time passes only when all goroutines wait. It
// calls test with a function that dials the service.
func inBubble(t *testing.T, test func(t *testing.T, s *Service, dial func() *rawgrpc.Conn)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, err := New(t.Context(), programtest.Parsed(t, programtest.TwoPerMinute), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		pipe := bufconn.Listen(1 << 20)
		s.grpc.listener = pipe
		ctx, stop := context.WithCancel(t.Context())
		go func() { _ = s.guards.run(ctx) }()
		go func() { _ = s.grpc.serve(s.guards.grpc) }()
		var conns []net.Conn
		test(t, s, func() *rawgrpc.Conn {
			conn, err := pipe.Dial()
			if err != nil {
				t.Fatal(err)
			}
			conns = append(conns, conn)
			r, err := rawgrpc.New(conn)
			if err != nil {
				t.Fatal(err)
			}
			return r
		})
		for _, c := range conns {
			_ = c.Close()
		}
		stop()
		s.Close(context.Background())
	})
}

func callWire(t *testing.T, user string) []byte {
	t.Helper()
	wire, err := proto.Marshal(&rlsv3.RateLimitRequest{Domain: "shop", Descriptors: []*rlsv3common.RateLimitDescriptor{{
		Entries: []*rlsv3common.RateLimitDescriptor_Entry{{Key: "user", Value: user}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return wire
}

// The pings of a gateway are welcome on an idle connection, for as long as it may live.
func TestPingsAreWelcome(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *Service, dial func() *rawgrpc.Conn) {
		r := dial()
		for i := range 50 {
			if i%10 == 0 && !r.Call(callWire(t, "ada")) {
				t.Fatal("no call is taken")
			}
			time.Sleep(30 * time.Second) // as the shipped files of Envoy have it
			if err := r.Ping(); err != nil {
				t.Fatalf("ping %d: %v", i+1, err)
			}
			synctest.Wait()
			if r.Pongs() != int64(i+1) || r.ToldToGo() || r.Gone() {
				t.Fatalf("ping %d: %d pongs, told to go %t, gone %t", i+1, r.Pongs(), r.ToldToGo(), r.Gone())
			}
		}
		if r.Answers() != 5 {
			t.Errorf("%d answers, want 5", r.Answers())
		}
	})
}

// A message that does not come in time costs its connection, and no other.
func TestAMessageThatDoesNotCome(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Service, dial func() *rawgrpc.Conn) {
		good, slow, half, late := dial(), dial(), dial(), dial()
		time.Sleep(time.Second)
		slow.Open()
		stream, _ := half.Open()
		half.Send(stream, 1000, make([]byte, 999), false)
		time.Sleep(guard.DefaultReceiveTimeout/2 - 3*time.Second)
		stream, _ = late.Open()
		wire := callWire(t, "late")
		time.Sleep(guard.DefaultReceiveTimeout/2 - time.Second)
		late.Send(stream, uint32(len(wire)), wire, true)
		for range int(guard.DefaultReceiveTimeout / time.Second) {
			if !good.Call(callWire(t, "ada")) {
				t.Fatal("a call is not taken")
			}
			time.Sleep(time.Second)
		}
		synctest.Wait()
		if !slow.Gone() || !half.Gone() || good.Gone() || late.Gone() {
			t.Errorf("gone: %t without a message, %t with a part, %t and %t with all; want true, true, false, false", slow.Gone(), half.Gone(), good.Gone(), late.Gone())
		}
		if got := s.guards.grpc.Closed(guard.Slow); got != 2 {
			t.Errorf("%d were counted, want 2", got)
		}
		if got := s.guards.grpc.Receiving(); got != 0 {
			t.Errorf("%d messages are awaited, want none", got)
		}
	})
}

// A connection that is too old is closed even when it goes on.
func TestConnectionsEnd(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Service, dial func() *rawgrpc.Conn) {
		age := s.cfg.Server.GRPC.MaxConnectionAge
		r := dial()
		for range 2 * int(age/time.Minute) {
			r.Call(callWire(t, "ada"))
			time.Sleep(time.Minute)
		}
		synctest.Wait()
		if !r.Gone() {
			t.Errorf("open after %v", 2*age)
		}
	})
}

func TestBoundsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(page), ",", "")
	shares := guard.Share(1024, 1<<20)
	for _, want := range []string{
		fmt.Sprintf("in connections of %d KiB at most %d", connectionBytes>>10, config.MostConnections),
		fmt.Sprintf("at most %d calls at a time", maxStreams),
		fmt.Sprintf("within %v", guard.DefaultReceiveTimeout),
		fmt.Sprintf("more often than every %v", pingEvery),
		fmt.Sprintf("streams of %d KiB and at least %d", streamBytes>>10, leastStreams),
		fmt.Sprintf("at least %d MiB and at most %d", leastPending>>20, mostPending>>20),
		fmt.Sprintf("a request must have come within %v", HTTPReadTimeout),
		fmt.Sprintf("headers of %d KiB", httpMaxHeader>>10),
		fmt.Sprintf("With 1024 descriptors gRPC may have %d connections HTTP %d and administration %d", shares.GRPC, shares.HTTP, shares.Admin),
		fmt.Sprintf("headers of a call may have %d KiB", maxCallHeaders>>10),
	} {
		if !strings.Contains(text, want) {
			t.Errorf("docs/configuration.md does not say: %s", want)
		}
	}
}
