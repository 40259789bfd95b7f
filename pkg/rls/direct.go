package rls

import (
	"context"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
)

// Direct is a call that comes neither over gRPC nor as a RateLimitRequest in JSON.
type Direct struct {
	Domain  string
	Use     descriptor.Use // UseTake, UseCheck, UseReport, or UseReserve of 0 hits
	Hits    uint64         // 0 counts as 1, and for UseReserve as nothing
	Entries []descriptor.Entry
}

// Reply is the answer of a [Direct] call.
type Reply struct {
	Denied  bool
	Headers [][2]string // names and values
}

// Ask answers a call with one descriptor. A check is denied where a limit has no room for all hits. The errors are those
// of gRPC: InvalidArgument, or PermissionDenied for charges that Options.JSON does not allow.
func (s *Service) Ask(ctx context.Context, d *Direct) (*Reply, error) {
	out, err := s.unary(ctx, methodOf(d.Use), func(v any) error {
		v.(*call).of(d) // unary passes no other type
		return nil
	}, nil)
	if err != nil {
		return nil, err
	}
	reply := &Reply{Denied: out.denied}
	readHeaders(out.data, func(name, value string) { reply.Headers = append(reply.Headers, [2]string{name, value}) })
	return reply, nil
}

// of makes the request that of a call.
func (r *request) of(d *Direct) {
	r.begin(0)
	r.json = true
	r.in.Domain, r.in.Hits = d.Domain, d.Hits
	switch {
	case d.Domain == "":
		r.problem = errNoDomain
	case len(d.Entries) > MaxEntries:
		r.problem = tooLarge(MaxEntries, "values")
	default:
		r.in.Descriptors = append(r.in.Descriptors, descriptor.Descriptor{Entries: d.Entries})
	}
}
