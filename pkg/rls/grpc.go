package rls

import (
	"context"
	"log/slog"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	// Its file descriptor is what server reflection shows.
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
)

const (
	// MaxMessage is the greatest size of a request that is read, in bytes: 1 MiB, which is
	// far above the headers that a gateway lets through. A larger one is denied under every
	// policy: an error or a policy would let a client pass that makes its headers large.
	MaxMessage = 1 << 20
	// MaxReceived is the greatest size of a request that is answered at all, in bytes: 16 MiB.
	// Envoy, which lets 60 KiB of headers through unless it is told otherwise, and never
	// more than 8 MiB, would need 2 copies of all headers, or 273 as it comes.
	MaxReceived = 16 << 20
)

// ServiceName is the name of the service, under which it reports its health.
const ServiceName = "envoy.service.ratelimit.v3.RateLimitService"

// ServerOptions returns the options that a server needs to serve a [Service]:
// its codec, which leaves the messages of other services to the standard one,
// and room for large values. Streams are not bounded, as Envoy answers a bound
// with calls that fail; Config.MaxInFlight bounds the work instead. Calls run on
// goroutines that are kept, whose stacks have grown to what a call needs: a fresh
// one for each call costs a tenth of the throughput and more. When all are busy,
// further calls get fresh ones.
func ServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ForceServerCodecV2(codec{encoding.GetCodecV2(proto.Name)}),
		grpc.MaxRecvMsgSize(MaxReceived),
		grpc.NumStreamWorkers(16 * uint32(runtime.GOMAXPROCS(0))), // #nosec G115 -- a number of processors
	}
}

// Register adds the service to a server that was made with [ServerOptions].
func (s *Service) Register(r grpc.ServiceRegistrar) {
	r.RegisterService(&grpc.ServiceDesc{
		ServiceName: ServiceName,
		HandlerType: (*unaryServer)(nil),
		Methods:     []grpc.MethodDesc{{MethodName: "ShouldRateLimit", Handler: shouldRateLimit}},
		Metadata:    rlsv3.RateLimitService_ServiceDesc.Metadata,
	}, s)
}

// unaryServer is what the handler wants of the registered service.
type unaryServer interface {
	unary(ctx context.Context, dec func(any) error, interceptor grpc.UnaryServerInterceptor) (*answer, error)
}

func shouldRateLimit(srv any, ctx context.Context, dec func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) { //nolint:revive // grpc wants the context second
	out, err := srv.(unaryServer).unary(ctx, dec, interceptor) // grpc has checked the type
	if err != nil {
		return nil, err // not out, which would be a nil *answer that is not nil
	}
	return out, nil
}

// unary answers one call, whatever happens in it.
func (s *Service) unary(ctx context.Context, dec func(any) error, interceptor grpc.UnaryServerInterceptor) (out *answer, err error) {
	c, _ := s.calls.Get().(*call)
	if err := dec(c); err != nil { // it waits for the message: until then the call does not count
		return nil, err
	}
	start, size := s.now(), int64(c.size)
	defer func() { s.metrics.duration.Observe(s.now().Sub(start).Seconds()) }()
	defer s.inFlight.Add(-1)
	defer s.bytes.Add(-size)
	switch bytes := s.bytes.Add(size); {
	case s.inFlight.Add(1) > s.max:
		s.metrics.errors.WithLabelValues("overloaded").Inc()
		s.trouble(ctx, eventOverloaded, "")
		return s.fallback(reasonOverloaded), nil
	case bytes > s.maxBytes && size > smallMessage:
		return s.tooLarge(ctx, "too many large requests at a time"), nil
	}
	defer func() {
		if cause := recover(); cause != nil {
			s.metrics.errors.WithLabelValues("panic").Inc()
			s.trouble(ctx, eventPanic, "", slog.Any("cause", cause), slog.String("stack", string(debug.Stack())))
			out, err = s.fallback(reasonFailed), nil
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
	info := &grpc.UnaryServerInfo{Server: s, FullMethod: rlsv3.RateLimitService_ShouldRateLimit_FullMethodName}
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

// answer is an encoded RateLimitResponse, with what the transports want to know of it.
type answer struct {
	data   []byte
	denied bool
}

// Denied reports whether the answer is a denial.
func (a *answer) Denied() bool { return a.denied }

// answer returns a copy of what was encoded: the call is used again before grpc
// has sent the answer.
func (c *call) answer() *answer {
	return &answer{data: slices.Clone(c.out), denied: c.verdict.denied}
}

// codec passes the messages of the service through its own coding, and every
// other message to the standard one.
type codec struct{ encoding.CodecV2 }

// Marshal implements encoding.CodecV2.
func (k codec) Marshal(v any) (mem.BufferSlice, error) {
	if a, ok := v.(*answer); ok {
		return mem.BufferSlice{mem.SliceBuffer(a.data)}, nil
	}
	return k.CodecV2.Marshal(v)
}

// Unmarshal implements encoding.CodecV2. What is wrong with a request is noted in it.
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
