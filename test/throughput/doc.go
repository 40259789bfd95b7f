// Package throughput measures the built program over gRPC beside a server that answers each call with
// the same bytes, on default grpc-go. Both are processes of their own, and have the same client.
package throughput
