package guard

import (
	"context"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/ratelimit/ratelimit/test/kit/rawgrpc"
)

// atRest waits until nothing is counted any more.
func atRest(t *testing.T, g *Guard) {
	t.Helper()
	if g.open.Load() != 0 || g.live.Load() != 0 || g.receiving.Load() != 0 || g.pending.Load() != 0 {
		t.Errorf("%d streams, %d live, %d receiving, %d bytes are counted at rest, want none",
			g.open.Load(), g.live.Load(), g.receiving.Load(), g.pending.Load())
	}
	for i := range g.queued {
		if n := g.queued[i].Load(); n != 0 {
			t.Errorf("%d calls are queued at rest, want none", n)
		}
	}
}

// desc is a service with the method that rawgrpc calls. Each of its handlers waits for a token.
func desc(tokens chan struct{}) *grpc.ServiceDesc {
	return &grpc.ServiceDesc{ServiceName: "envoy.service.ratelimit.v3.RateLimitService", Methods: []grpc.MethodDesc{{
		MethodName: "ShouldRateLimit",
		Handler: func(_ any, ctx context.Context, dec func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			if err := dec(new(emptypb.Empty)); err != nil {
				return nil, err
			}
			select {
			case <-tokens:
				return new(emptypb.Empty), nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		},
	}}}
}

// guarded serves in a synctest bubble, and gives test a dialer. Handlers answer when there are
// tokens.
func guarded(t *testing.T, cfg Config, test func(t *testing.T, g *Guard, tokens chan struct{}, dial func() *rawgrpc.Conn)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		g := New(cfg)
		tokens := make(chan struct{}, 1<<16)
		server := grpc.NewServer(append(g.Options(insecure.NewCredentials()), grpc.MaxConcurrentStreams(1024), grpc.MaxHeaderListSize(64<<10))...)
		g.Server(server).RegisterService(desc(tokens), nil)
		pipe := bufconn.Listen(1 << 20)
		go func() { _ = server.Serve(g.Listener(pipe)) }()
		ctx, stop := context.WithCancel(t.Context())
		go g.Run(ctx)
		var conns []net.Conn
		test(t, g, tokens, func() *rawgrpc.Conn {
			c, err := pipe.Dial()
			if err != nil {
				t.Fatal(err)
			}
			conns = append(conns, c)
			r, err := rawgrpc.New(c)
			if err != nil {
				t.Fatal(err)
			}
			return r
		})
		for _, c := range conns {
			_ = c.Close()
		}
		server.Stop()
		synctest.Wait()
		time.Sleep(2 * DefaultReceiveTimeout) // by then calls without a handler are dropped
		stop()
		synctest.Wait()
		atRest(t, g)
	})
}

// Headers without messages, on the most connections, leave each connection its share.
func TestHeadersWithoutMessages(t *testing.T) {
	guarded(t, Config{MaxConnections: 40, MaxStreams: 480}, func(t *testing.T, g *Guard, tokens chan struct{}, dial func() *rawgrpc.Conn) {
		for range 35 {
			r := dial()
			for range 4000 {
				if _, ok := r.Open(); !ok {
					break
				}
			}
		}
		synctest.Wait()
		if got := g.Streams(); got > g.MaxStreams() || got > 480/halfShare+36*(g.few+1) {
			t.Errorf("%d streams, want %d at most", got, 480/halfShare+36*(g.few+1))
		}
		for range 50 {
			tokens <- struct{}{}
		}
		good := dial()
		for i := range 50 {
			if !good.Call(nil) {
				t.Fatal("a call is not taken")
			}
			synctest.Wait()
			if got := good.Answers(); got != int64(i+1) {
				t.Fatalf("%d answers to %d calls", got, i+1)
			}
		}
		time.Sleep(2 * DefaultReceiveTimeout)
		if got := g.Closed(Slow); got != 35 {
			t.Errorf("%d were closed, want 35", got)
		}
	})
}

// One connection may have all its calls at once. Their messages may come with their headers or
// after the headers of all.
func TestAThousandCallsOnANewConnection(t *testing.T) {
	for _, after := range []bool{false, true} {
		guarded(t, Config{}, func(t *testing.T, g *Guard, tokens chan struct{}, dial func() *rawgrpc.Conn) {
			r := dial()
			streams := make([]uint32, 0, 1024)
			for range 1024 {
				id, ok := r.Open()
				if !ok {
					t.Fatal("a call is not taken")
				}
				streams = append(streams, id)
				if !after {
					r.Send(id, 0, nil, true)
				}
			}
			for _, id := range streams {
				if after {
					r.Send(id, 0, nil, true)
				}
			}
			synctest.Wait()
			if got := deciding(&g.live, &g.receiving, &g.queued); got != 1024 {
				t.Errorf("%d calls are decided at a time, want 1024", got)
			}
			for range 1024 {
				tokens <- struct{}{}
			}
			synctest.Wait()
			if got := r.Answers(); got != 1024 {
				t.Errorf("%d answers, want 1024", got)
			}
			time.Sleep(2 * DefaultReceiveTimeout)
			if r.Gone() {
				t.Error("the connection is closed, and its messages came")
			}
		})
	}
}

// Whole messages beyond the bound wait. None is refused, and each connection has its share.
func TestMoreCallsThanAreDecided(t *testing.T) {
	guarded(t, Config{MaxConnections: 10, MaxStreams: 100}, func(t *testing.T, g *Guard, tokens chan struct{}, dial func() *rawgrpc.Conn) {
		all := make([]*rawgrpc.Conn, 0, 5)
		for range cap(all) {
			r := dial()
			all = append(all, r)
			for range 200 {
				r.Call(nil)
			}
			synctest.Wait()
		}
		if got, most := g.Streams(), int64(100+5*(4+1)); got < 100+3*4 || got > most {
			t.Errorf("%d streams, want %d at most and the share of each connection", got, most)
		}
		for range 1000 {
			tokens <- struct{}{}
		}
		time.Sleep(time.Minute)
		for i, r := range all {
			if got := r.Answers(); got != 200 {
				t.Errorf("connection %d: %d answers, want 200", i+1, got)
			}
		}
	})
}

// Streams that are reset at once have no more handlers than the bound.
func TestResets(t *testing.T) {
	guarded(t, Config{MaxConnections: 10, MaxStreams: 120}, func(t *testing.T, g *Guard, _ chan struct{}, dial func() *rawgrpc.Conn) {
		r := dial()
		for range 3000 {
			id, ok := r.Open()
			if !ok {
				t.Fatal("the connection is closed")
			}
			r.Reset(id)
			if got := g.Streams(); got > g.MaxStreams() {
				t.Fatalf("%d streams, want %d at most", got, g.MaxStreams())
			}
		}
	})
}

// A peer that does not read its answers, for want of a window, has few streams, and its connection
// is closed.
func TestAnswersThatAreNotRead(t *testing.T) {
	guarded(t, Config{MaxConnections: 10, MaxStreams: 120}, func(t *testing.T, g *Guard, tokens chan struct{}, dial func() *rawgrpc.Conn) {
		for range 5000 {
			tokens <- struct{}{}
		}
		for range 5 {
			r := dial()
			if err := r.Window(0); err != nil {
				t.Fatal(err)
			}
			for range 900 {
				r.Call(nil)
			}
		}
		synctest.Wait()
		if got := g.Streams(); got > g.MaxStreams() {
			t.Errorf("%d streams, want %d at most", got, g.MaxStreams())
		}
		time.Sleep(2 * DefaultReceiveTimeout)
		if got := g.Closed(Slow); got != 5 {
			t.Errorf("%d were closed, want 5", got)
		}
	})
}

// A peer that reads nothing at all is closed.
func TestAPeerThatDoesNotRead(t *testing.T) {
	guarded(t, Config{}, func(t *testing.T, g *Guard, _ chan struct{}, dial func() *rawgrpc.Conn) {
		r := dial()
		r.Stall()
		for range 300_000 {
			if r.Settings() != nil {
				break
			}
		}
		time.Sleep(2 * DefaultReceiveTimeout)
		if got := g.Closed(Slow); got != 1 {
			t.Errorf("%d were closed, want 1", got)
		}
	})
}

// Calls without a handler are not counted forever.
func TestCallsWithoutHandler(t *testing.T) {
	guarded(t, Config{}, func(_ *testing.T, _ *Guard, _ chan struct{}, dial func() *rawgrpc.Conn) {
		r := dial()
		for range 100 {
			r.Open([2]string{"grpc-timeout", "1n"})
			r.Open([2]string{"grpc-encoding", "unknown"})
			r.Open([2]string{"large", strings.Repeat("x", 20<<10)})
			r.Open([2]string{"connection", "close"})
		}
		synctest.Wait()
	})
}

// Headers that do not end cost their connection. Headers that are too large cost their call.
func TestHeadersWithoutEnd(t *testing.T) {
	guarded(t, Config{}, func(t *testing.T, g *Guard, tokens chan struct{}, dial func() *rawgrpc.Conn) {
		if err := dial().Begin(); err != nil {
			t.Fatal(err)
		}
		r := dial()
		r.Open([2]string{"large", strings.Repeat("x", 50<<10)}, [2]string{"larger", strings.Repeat("x", 50<<10)})
		tokens <- struct{}{}
		r.Call(nil)
		synctest.Wait()
		if got := r.Answers(); got != 1 {
			t.Errorf("%d answers, want 1", got)
		}
		time.Sleep(2 * DefaultReceiveTimeout)
		if got := g.Closed(Slow); got != 1 {
			t.Errorf("%d were closed, want 1", got)
		}
	})
}

// Endless pings, from a peer that reads, close its connection.
func TestPingsWithoutEnd(t *testing.T) {
	guarded(t, Config{}, func(t *testing.T, _ *Guard, _ chan struct{}, dial func() *rawgrpc.Conn) {
		r := dial()
		for range 10_000 {
			if r.Ping() != nil {
				break
			}
		}
		time.Sleep(2 * time.Second) // the peer gets the reason before
		if !r.Gone() {
			t.Error("the connection is open")
		}
	})
}
