package rls

import (
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
)

// KuadrantFile is the name of the file that describes Kuadrant's service, for server reflection.
const KuadrantFile = "kuadrantrls.proto"

// KuadrantDescriptor describes Kuadrant's service, for server reflection. The messages of Envoy that it names must be
// in the registry of files.
func KuadrantDescriptor() (protoreflect.FileDescriptor, error) {
	const (
		pkg        = ".kuadrant.service.ratelimit.v1."
		request    = ".envoy.service.ratelimit.v3.RateLimitRequest"
		response   = ".envoy.service.ratelimit.v3.RateLimitResponse"
		descriptor = ".envoy.extensions.common.ratelimit.v3.RateLimitDescriptor"
	)
	rpc := func(name, in, out string) *descriptorpb.MethodDescriptorProto {
		return &descriptorpb.MethodDescriptorProto{Name: &name, InputType: &in, OutputType: &out}
	}
	field := func(number int32, name string, kind descriptorpb.FieldDescriptorProto_Type, of string) *descriptorpb.FieldDescriptorProto {
		f := &descriptorpb.FieldDescriptorProto{Name: &name, Number: &number, Type: &kind, Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum()}
		if of != "" {
			f.TypeName = &of
		}
		if of == descriptor {
			f.Label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
		}
		return f
	}
	message := func(name string, fields ...*descriptorpb.FieldDescriptorProto) *descriptorpb.DescriptorProto {
		return &descriptorpb.DescriptorProto{Name: &name, Field: fields}
	}
	const (
		text    = descriptorpb.FieldDescriptorProto_TYPE_STRING
		number  = descriptorpb.FieldDescriptorProto_TYPE_UINT64
		boolean = descriptorpb.FieldDescriptorProto_TYPE_BOOL
		object  = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE
		enum    = descriptorpb.FieldDescriptorProto_TYPE_ENUM
	)
	return protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: new(KuadrantFile), Package: new("kuadrant.service.ratelimit.v1"), Syntax: new("proto3"),
		Dependency: []string{"envoy/service/ratelimit/v3/rls.proto", "envoy/extensions/common/ratelimit/v3/ratelimit.proto", "google/protobuf/duration.proto"},
		Service: []*descriptorpb.ServiceDescriptorProto{{Name: new("RateLimitService"), Method: []*descriptorpb.MethodDescriptorProto{
			rpc("CheckRateLimit", request, response), rpc("Report", request, response),
			rpc("Reserve", pkg+"ReserveRequest", pkg+"ReserveResponse"), rpc("Commit", pkg+"CommitRequest", pkg+"CommitResponse"),
		}}},
		MessageType: []*descriptorpb.DescriptorProto{
			message("ReserveRequest", field(1, "domain", text, ""), field(2, "descriptors", object, descriptor), field(3, "amount", number, ""), field(4, "ttl", object, ".google.protobuf.Duration")),
			message("ReserveResponse", field(1, "code", enum, response+".Code"), field(2, "reservation_id", text, "")),
			message("CommitRequest", field(1, "domain", text, ""), field(2, "descriptors", object, descriptor), field(3, "reservation_id", text, ""), field(4, "actual_amount", number, "")),
			message("CommitResponse", field(1, "reservation_released", boolean, "")),
		},
	}, protoregistry.GlobalFiles)
}
