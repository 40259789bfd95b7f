package guard

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/tap"
)

// Sized is a message that knows how many bytes it had on the wire.
type Sized interface{ WireSize() int }

// Server is a gRPC server whose calls the guard watches, as far as they are registered here.
type Server struct {
	*grpc.Server

	guard *Guard
}

// Server returns s, which was made with Option, for the registration of services.
func (g *Guard) Server(s *grpc.Server) *Server { return &Server{s, g} }

// Option returns the option that a server needs to be watched.
func (g *Guard) Option() grpc.ServerOption {
	return grpc.InTapHandle(func(ctx context.Context, _ *tap.Info) (context.Context, error) {
		if c := connOf(ctx); c != nil {
			c.open()
		}
		return ctx, nil
	})
}

// RegisterService implements grpc.ServiceRegistrar.
func (s *Server) RegisterService(desc *grpc.ServiceDesc, impl any) {
	watched := *desc
	watched.Methods = make([]grpc.MethodDesc, len(desc.Methods))
	for i, m := range desc.Methods {
		handler := m.Handler
		m.Handler = func(srv any, ctx context.Context, dec func(any) error, ic grpc.UnaryServerInterceptor) (any, error) {
			if c := connOf(ctx); c != nil {
				c.began()
				return handler(srv, ctx, func(v any) error { return c.receive(dec, v) }, ic)
			}
			return handler(srv, ctx, dec, ic)
		}
		watched.Methods[i] = m
	}
	watched.Streams = make([]grpc.StreamDesc, len(desc.Streams))
	for i, d := range desc.Streams {
		handler := d.Handler
		d.Handler = func(srv any, stream grpc.ServerStream) error {
			if c := connOf(stream.Context()); c != nil {
				c.began()
				stream = &watchedStream{stream, c}
			}
			return handler(srv, stream)
		}
		watched.Streams[i] = d
	}
	s.Server.RegisterService(&watched, impl)
}

// connOf returns the connection of a call, nil when it is none that is watched.
func connOf(ctx context.Context) *conn {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return nil
	}
	r, ok := p.Addr.(*remote)
	if !ok {
		return nil
	}
	return r.conn
}

// receive is dec, watched.
func (c *conn) receive(dec func(any) error, v any) error {
	slot := c.begin()
	err := dec(v)
	size := int64(messageHead)
	if m, ok := v.(Sized); ok && err == nil {
		size += int64(m.WireSize())
	}
	c.finish(slot, size, err == nil)
	return err
}

// watchedStream watches each message of a stream.
type watchedStream struct {
	grpc.ServerStream

	conn *conn
}

// RecvMsg implements grpc.ServerStream.
func (s *watchedStream) RecvMsg(m any) error { return s.conn.receive(s.ServerStream.RecvMsg, m) }
