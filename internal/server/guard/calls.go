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

// keptHeaders is the most bytes of headers that a call keeps. Of a call with more, all are dropped,
// as only tracing reads them.
const keptHeaders = 8 << 10

// Sized is a message with its number of bytes on the wire.
type Sized interface{ WireSize() int }

// Server is a gRPC server. The guard watches the calls of services that are registered through it.
type Server struct {
	*grpc.Server

	guard *Guard
}

// Server returns s for the registration of services. s was made with Options.
func (g *Guard) Server(s *grpc.Server) *Server { return &Server{s, g} }

// Options returns the options that a watched server with these credentials needs.
func (g *Guard) Options(creds credentials.TransportCredentials) []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.Creds(watchedCredentials{creds}),
		grpc.ReadBufferSize(0), // a wire has a buffer of its own
		grpc.InTapHandle(g.take),
		grpc.RPCDecompressor(packed{}), //nolint:staticcheck // nothing else refuses one that another package registered
	}
}

// packed refuses compressed messages, of which some KiB can become 16 MiB each. No gateway sends
// any.
type packed struct{}

// Type implements grpc.Decompressor.
func (packed) Type() string { return gzip.Name }

// Do implements grpc.Decompressor.
func (packed) Do(io.Reader) ([]byte, error) {
	return nil, errors.New("compressed messages are not accepted: send the message uncompressed")
}

// take counts a call that the server accepts. It runs in the goroutine that reads the connection.
// It ends a call without a handler, whose end could not be counted.
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

// call is a watched call, and its context.
type call struct {
	context.Context //nolint:containedctx // it is one

	conn  *conn
	epoch int64
	begun atomic.Bool
}

type callKey struct{}

// Value implements context.Context.
func (c *call) Value(key any) any {
	if key == (callKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// Err implements context.Context. It is nil until the handler has begun. Otherwise the server could
// end a call after it was counted and before its handler begins.
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
	} else { // it was dropped as queued
		s.live.Add(1)
		g.live.Add(1)
	}
}

// end notes that the handler has ended.
func (c *call) end() {
	c.conn.streams.live.Add(-1)
	c.conn.guard.live.Add(-1)
	c.conn.streams.notify()
}

// receive calls dec and watches it.
func (c *call) receive(dec func(any) error, v any) error {
	c.conn.streams.receiving.Add(1)
	c.conn.guard.receiving.Add(1)
	err := dec(v)
	size := int64(messageHead)
	if m, ok := v.(Sized); ok && err == nil {
		size += int64(m.WireSize())
	}
	c.conn.finish(size, err == nil)
	c.conn.streams.notify()
	return err
}

// callOf returns the watched call of a context, nil when there is none.
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
