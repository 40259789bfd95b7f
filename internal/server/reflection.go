package server

import (
	"strings"

	"google.golang.org/grpc/reflection"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	reflectionalpha "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/ratelimit/ratelimit/pkg/rls"
)

// files are the files that server reflection knows: those of Go's registry, and that of Kuadrant's service.
type files struct {
	protodesc.Resolver

	kuadrant protoreflect.FileDescriptor
}

// FindFileByPath implements protodesc.Resolver.
func (f files) FindFileByPath(path string) (protoreflect.FileDescriptor, error) {
	if path == f.kuadrant.Path() {
		return f.kuadrant, nil
	}
	return f.Resolver.FindFileByPath(path)
}

// FindDescriptorByName implements protodesc.Resolver.
func (f files) FindDescriptorByName(name protoreflect.FullName) (protoreflect.Descriptor, error) {
	if rest, ok := strings.CutPrefix(string(name), string(f.kuadrant.Package())+"."); ok {
		if d := f.kuadrant.Messages().ByName(protoreflect.Name(rest)); d != nil {
			return d, nil
		}
		if d := f.kuadrant.Services().ByName(protoreflect.Name(rest)); d != nil {
			return d, nil
		}
	}
	return f.Resolver.FindDescriptorByName(name)
}

// reflect adds server reflection.
func reflect(server reflection.GRPCServer) error {
	kuadrant, err := rls.KuadrantDescriptor()
	if err != nil {
		return err
	}
	known := reflection.ServerOptions{Services: server, DescriptorResolver: files{protoregistry.GlobalFiles, kuadrant}}
	reflectionpb.RegisterServerReflectionServer(server, reflection.NewServerV1(known))
	reflectionalpha.RegisterServerReflectionServer(server, reflection.NewServer(known))
	return nil
}
