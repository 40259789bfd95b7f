package rls_test

import (
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"

	"github.com/ratelimit/ratelimit/pkg/rls"
)

// Health and reflection are served beside the service, through its codec.
func TestOtherServices(t *testing.T) {
	service := newEnv(t, nil).service
	conn := dial(t, func(r grpc.ServiceRegistrar) {
		service.Register(r)
		healthpb.RegisterHealthServer(r, health.NewServer())
		reflection.Register(r.(reflection.GRPCServer))
	}, rls.ServerOptions()...)
	got, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{})
	if err != nil || got.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("health: got %v, %v", got, err)
	}
	stream, err := reflectionpb.NewServerReflectionClient(conn).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ask := &reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: rls.ServiceName}}
	if err := stream.Send(ask); err != nil {
		t.Fatal(err)
	}
	answer, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	files := answer.GetFileDescriptorResponse().GetFileDescriptorProto()
	if len(files) == 0 || !strings.Contains(string(files[0]), "envoy/service/ratelimit/v3/rls.proto") {
		t.Errorf("reflection knows no file of %s: %v", rls.ServiceName, answer)
	}
}
