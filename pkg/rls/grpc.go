package rls

import (
	"context"
	"log/slog"
	"runtime"
	"runtime/debug"
	"time"

	// Server reflection shows its file descriptor.
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
)

// ServiceName is the name of the service, under which it reports its health.
const ServiceName = "envoy.service.ratelimit.v3.RateLimitService"

// streamWorkers is how many goroutines serve calls, for each processor. More calls at a time are usual
// only where the store is slow.
const streamWorkers = 64

// ServerOptions returns the options that a server needs to serve a [Service]: its codec, and room
// for large values. The codec leaves the messages of other services to the standard one. Streams
// are not bounded, as Envoy would answer a bound with failed calls; Config.MaxInFlight bounds the
// work instead. Calls run on long-lived goroutines, whose stacks have the size that a call needs. A
// new goroutine for each call costs a tenth of the throughput or more. When all are busy, further
// calls get new ones.
func ServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ForceServerCodecV2(codec{encoding.GetCodecV2(proto.Name)}),
		grpc.MaxRecvMsgSize(MaxReceived),
		grpc.NumStreamWorkers(streamWorkers * uint32(runtime.GOMAXPROCS(0))), // #nosec G115 -- a number of processors
	}
}

// Register adds the service, and that of Kuadrant, to a server that was made with [ServerOptions].
func (s *Service) Register(r grpc.ServiceRegistrar) {
	r.RegisterService(&grpc.ServiceDesc{
		ServiceName: ServiceName,
		HandlerType: (*unaryServer)(nil),
		Methods:     []grpc.MethodDesc{{MethodName: "ShouldRateLimit", Handler: handlerOf(nil)}},
		Metadata:    rlsv3.RateLimitService_ServiceDesc.Metadata,
	}, s)
	desc := &grpc.ServiceDesc{ServiceName: KuadrantServiceName, HandlerType: (*unaryServer)(nil), Metadata: KuadrantFile}
	for _, m := range kuadrantMethods() {
		desc.Methods = append(desc.Methods, grpc.MethodDesc{MethodName: m.name, Handler: handlerOf(m)})
	}
	r.RegisterService(desc, s)
}

// unaryServer is the interface that the handler needs of the registered service.
type unaryServer interface {
	unary(ctx context.Context, m *method, dec func(any) error, interceptor grpc.UnaryServerInterceptor) (*answer, error)
}

// handlerOf returns the handler of a method; nil = ShouldRateLimit.
func handlerOf(m *method) grpc.MethodHandler {
	return func(srv any, ctx context.Context, dec func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
		out, err := srv.(unaryServer).unary(ctx, m, dec, interceptor) // grpc has checked the type
		if err != nil {
			return nil, err // out would be a nil *answer in an interface that is not nil
		}
		return out, nil
	}
}

// unary answers one call, even if it panics.
func (s *Service) unary(ctx context.Context, m *method, dec func(any) error, interceptor grpc.UnaryServerInterceptor) (out *answer, err error) {
	c, _ := s.calls.Get().(*call)
	c.method = m
	if err := dec(c); err != nil { // waits for the message; until then the call does not count
		return nil, err
	}
	start, size := s.now(), int64(c.size)
	defer func() {
		took := s.now().Sub(start)
		s.metrics.duration.Observe(took.Seconds())
		if m == nil {
			s.metrics.files.call(took, err)
		}
	}()
	defer s.inFlight.Add(-1)
	defer s.bytes.Add(-size)
	switch bytes := s.bytes.Add(size); {
	case s.inFlight.Add(1) > s.max:
		s.metrics.errors.WithLabelValues("overloaded").Inc()
		s.log.trouble(ctx, eventOverloaded, "")
		return s.fallback(m, reasonOverloaded), nil
	case bytes > s.maxBytes && size > smallMessage:
		return s.tooLarge(ctx, m, "too many large requests at a time"), nil
	}
	defer func() {
		if cause := recover(); cause != nil {
			s.metrics.errors.WithLabelValues("panic").Inc()
			s.log.trouble(ctx, eventPanic, "", slog.Any("cause", cause), slog.String("stack", string(debug.Stack())))
			out, err = s.fallback(m, reasonFailed), nil
		}
	}()
	out, err = s.intercept(ctx, start, c, interceptor)
	if c.size <= maxPooled && len(c.entries) <= maxPooledEntries {
		s.calls.Put(c) // not when it panicked
	}
	return out, err
}

// intercept serves the call, within the interceptor if there is one.
func (s *Service) intercept(ctx context.Context, now time.Time, c *call, interceptor grpc.UnaryServerInterceptor) (*answer, error) {
	if interceptor == nil {
		return s.serve(ctx, now, c)
	}
	info := &grpc.UnaryServerInfo{Server: s, FullMethod: c.method.fullName()}
	out, err := interceptor(ctx, c, info, func(ctx context.Context, _ any) (any, error) { return s.serve(ctx, now, c) })
	if err != nil {
		return nil, err
	}
	a, ok := out.(*answer)
	if !ok {
		return nil, status.Errorf(codes.Internal, "an interceptor replaced the answer by a %T", out)
	}
	return a, nil
}

// codec codes the messages of the service itself, and leaves every other message to the standard
// codec.
type codec struct{ encoding.CodecV2 }

// Marshal implements encoding.CodecV2.
func (k codec) Marshal(v any) (mem.BufferSlice, error) {
	if a, ok := v.(*answer); ok {
		return mem.BufferSlice{mem.SliceBuffer(a.data)}, nil
	}
	return k.CodecV2.Marshal(v)
}

// Unmarshal implements encoding.CodecV2. It notes the problem of a request in the request.
func (k codec) Unmarshal(data mem.BufferSlice, v any) error {
	c, ok := v.(*call)
	if !ok {
		return k.CodecV2.Unmarshal(data, v)
	}
	if size := data.Len(); size > MaxMessage {
		c.begin(size)
		return nil
	}
	if len(data) == 1 {
		c.decode(data[0].ReadOnlyData())
		return nil
	}
	whole := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer whole.Free()
	c.decode(whole.ReadOnlyData())
	return nil
}
