package rls

import (
	"context"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
)

// Client asks a rate limit service over gRPC. It is safe for concurrent use.
type Client struct{ stub rlsv3.RateLimitServiceClient }

// NewClient returns a client of the service at the other end of a connection.
func NewClient(conn grpc.ClientConnInterface) *Client {
	return &Client{stub: rlsv3.NewRateLimitServiceClient(conn)}
}

// Ask makes a call with domain, hits, and entries of descriptors with their hits. Its errors are
// those of gRPC.
func (c *Client) Ask(ctx context.Context, call *descriptor.Call) (denied bool, err error) {
	req := &rlsv3.RateLimitRequest{Domain: call.Domain, HitsAddend: uint32(min(call.Hits, 1<<32-1))} // #nosec G115 -- bounded
	for _, d := range call.Descriptors {
		out := new(commonv3.RateLimitDescriptor)
		for _, e := range d.Entries {
			out.Entries = append(out.Entries, &commonv3.RateLimitDescriptor_Entry{Key: e.Key, Value: e.Value})
		}
		if d.HitsSet {
			out.HitsAddend = wrapperspb.UInt64(d.Hits)
		}
		req.Descriptors = append(req.Descriptors, out)
	}
	resp, err := c.stub.ShouldRateLimit(ctx, req)
	if err != nil {
		return false, err
	}
	return resp.GetOverallCode() == rlsv3.RateLimitResponse_OVER_LIMIT, nil
}
