package guard

import (
	"context"
	"errors"
	"io"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
)

// keptHeaders is how many bytes of headers a call may keep. Those of a call with more are
// dropped: nothing but tracing reads them.
const keptHeaders = 8 << 10

// Sized is a message that knows how many bytes it had on the wire.
type Sized interface{ WireSize() int }

// Server is a gRPC server whose calls the guard watches, as far as they are registered here.
type Server struct {
	*grpc.Server

	guard *Guard
}

// Server returns s, which was made with Options, for the registration of services.
func (g *Guard) Server(s *grpc.Server) *Server { return &Server{s, g} }

// Options returns the options that a server with these credentials needs to be watched.
func (g *Guard) Options(creds credentials.TransportCredentials) []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.Creds(watchedCredentials{creds}),
		grpc.ReadBufferSize(0), // a wire has its own
		grpc.InTapHandle(g.take),
		grpc.RPCDecompressor(packed{}), //nolint:staticcheck // nothing else refuses one that another package registered
	}
}

// packed refuses compressed messages, of which some KiB can become 16 MiB each. No gateway sends any.
type packed struct{}

// Type implements grpc.Decompressor.
func (packed) Type() string { return gzip.Name }

// Do implements grpc.Decompressor.
func (packed) Do(io.Reader) ([]byte, error) {
	return nil, errors.New("compressed messages are not taken: send the message as it is")
}

// take counts a call that the server takes. It runs where the connection is read. A call that has
// no handler ends here: its end could not be counted.
func (g *Guard) take(ctx context.Context, info *tap.Info) (context.Context, error) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return ctx, nil
	}
	r, ok := p.Addr.(*remote)
	if !ok {
		return ctx, nil
	}
	if !g.methods[info.FullMethodName] {
		return nil, status.Error(codes.Unimplemented, "the service has no such method")
	}
	if headerBytes(info.Header) > keptHeaders {
		clear(info.Header)
	}
	c := &call{Context: ctx, conn: r.conn, epoch: g.epoch.Load()}
	c.conn.streams.queued[c.slot()].Add(1)
	g.queued[c.slot()].Add(1)
	c.conn.streams.live.Add(1)
	g.live.Add(1)
	return c, nil
}

func headerBytes(md metadata.MD) (n int) {
	for k, values := range md {
		for _, v := range values {
			n += len(k) + len(v) + 32 // as HTTP/2 counts them
		}
	}
	return n
}

// call is a call that is watched, and its context.
type call struct {
	context.Context //nolint:containedctx // it is one

	conn     *conn
	epoch    int64
	begun    atomic.Bool
	deciding bool // its message is here
}

type callKey struct{}

// Value implements context.Context.
func (c *call) Value(key any) any {
	if key == (callKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// Err implements context.Context. It is nil until the handler has begun: the server would
// else end a call after it was counted and before it gets a handler.
func (c *call) Err() error {
	if !c.begun.Load() {
		return nil
	}
	return c.Context.Err()
}

func (c *call) slot() int64 { return c.epoch & (slots - 1) }

// begin notes that the handler begins.
func (c *call) begin() {
	g, s := c.conn.guard, &c.conn.streams
	c.begun.Store(true)
	if g.epoch.Load()-c.epoch < overdue {
		s.queued[c.slot()].Add(-1)
		g.queued[c.slot()].Add(-1)
	} else { // it was forgotten
		s.live.Add(1)
		g.live.Add(1)
	}
}

// end notes that the handler has ended.
func (c *call) end() {
	c.decides(false)
	c.conn.streams.live.Add(-1)
	c.conn.guard.live.Add(-1)
	c.conn.streams.notify()
}

// decides notes whether the message is here.
func (c *call) decides(now bool) {
	if c.deciding == now {
		return
	}
	c.deciding = now
	n := int64(1)
	if !now {
		n = -1
	}
	c.conn.streams.deciding.Add(n)
	c.conn.guard.deciding.Add(n)
	if now {
		c.conn.streams.notify()
	}
}

// receive is dec, watched.
func (c *call) receive(dec func(any) error, v any) error {
	c.decides(false)
	c.conn.streams.receiving.Add(1)
	c.conn.guard.receiving.Add(1)
	err := dec(v)
	size := int64(messageHead)
	if m, ok := v.(Sized); ok && err == nil {
		size += int64(m.WireSize())
	}
	c.conn.finish(size, err == nil)
	c.decides(err == nil)
	return err
}

// callOf returns the call of a context, nil when it is none that is watched.
func callOf(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

// RegisterService implements grpc.ServiceRegistrar.
func (s *Server) RegisterService(desc *grpc.ServiceDesc, impl any) {
	watched := *desc
	watched.Methods = make([]grpc.MethodDesc, len(desc.Methods))
	for i, m := range desc.Methods {
		handler := m.Handler
		m.Handler = func(srv any, ctx context.Context, dec func(any) error, ic grpc.UnaryServerInterceptor) (any, error) {
			if c := callOf(ctx); c != nil {
				c.begin()
				defer c.end()
				return handler(srv, ctx, func(v any) error { return c.receive(dec, v) }, ic)
			}
			return handler(srv, ctx, dec, ic)
		}
		watched.Methods[i] = m
		s.guard.methods["/"+desc.ServiceName+"/"+m.MethodName] = true
	}
	watched.Streams = make([]grpc.StreamDesc, len(desc.Streams))
	for i, d := range desc.Streams {
		handler := d.Handler
		d.Handler = func(srv any, stream grpc.ServerStream) error {
			if c := callOf(stream.Context()); c != nil {
				c.begin()
				defer c.end()
				stream = &watchedStream{stream, c}
			}
			return handler(srv, stream)
		}
		watched.Streams[i] = d
		s.guard.methods["/"+desc.ServiceName+"/"+d.StreamName] = true
	}
	s.Server.RegisterService(&watched, impl)
}

// watchedStream watches each message of a stream.
type watchedStream struct {
	grpc.ServerStream

	call *call
}

// RecvMsg implements grpc.ServerStream.
func (s *watchedStream) RecvMsg(m any) error { return s.call.receive(s.ServerStream.RecvMsg, m) }
