package rls

import (
	"fmt"
	"strings"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
)

// appendRulesMetadata appends the dynamic metadata of envoyproxy/ratelimit: the call, and the metadata of the rules
// whose descriptors are admitted.
func appendRulesMetadata(b []byte, c *call) []byte {
	fields := map[string]any{"domain": c.in.Domain}
	merged := map[string]any{}
	descriptors := make([]any, len(c.in.Descriptors))
	for i := range c.in.Descriptors {
		d := &c.in.Descriptors[i]
		descriptors[i] = askedOf(d)
		o := &c.plan.Outcomes[i]
		if of, _ := descriptor.Quote(o.Rule); of.Metadata != nil && !c.over(o) {
			merge(merged, of.Metadata)
		}
	}
	fields["descriptors"] = descriptors
	if c.in.Hits > 0 {
		fields["hitsAddend"] = c.in.Hits
	}
	if len(merged) > 0 {
		fields["metadata"] = merged
	}
	text, err := structpb.NewStruct(fields)
	if err != nil { // impossible: Compile has checked the metadata, and entries are valid here
		return b
	}
	encoded, err := proto.Marshal(text)
	if err != nil {
		return b
	}
	b, mark := begin(b, responseMetadata)
	return end(append(b, encoded...), mark)
}

// askedOf is a descriptor of the call.
func askedOf(d *descriptor.Descriptor) map[string]any {
	entries := make([]any, len(d.Entries))
	for i, e := range d.Entries {
		entries[i] = strings.ToValidUTF8(e.Key+"="+e.Value, "\uFFFD")
	}
	of := map[string]any{"entries": entries}
	if d.Limit != nil {
		w := windowOf(d.Limit.Period)
		of["limit"] = fmt.Sprintf("requests_per_unit:%d unit:%s", d.Limit.Requests, rlsv3.RateLimitResponse_RateLimit_Unit_name[w.unit])
	}
	if d.HitsSet {
		of["hitsAddend"] = d.Hits
	}
	return of
}

// merge adds the keys that to lacks, and merges maps.
func merge(to, from map[string]any) {
	for key, value := range from {
		more, isMap := value.(map[string]any)
		have, known := to[key]
		switch below, ok := have.(map[string]any); {
		case !known && isMap:
			copied := map[string]any{} // the one of the rule stays as it is
			merge(copied, more)
			to[key] = copied
		case !known:
			to[key] = value
		case ok && isMap:
			merge(below, more)
		}
	}
}
