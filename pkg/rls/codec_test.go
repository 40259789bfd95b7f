package rls

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
)

// callOf makes the call that decode must make of the wire form of a message.
func callOf(m *rlsv3.RateLimitRequest) (descriptor.Call, bool) {
	valid := m.GetDomain() != "" && len(m.GetDescriptors()) > 0
	c := descriptor.Call{Domain: m.GetDomain(), Hits: uint64(m.GetHitsAddend())}
	for _, d := range m.GetDescriptors() {
		desc := descriptor.Descriptor{
			HitsSet: d.HitsAddend != nil, Hits: d.GetHitsAddend().GetValue(),
			Refund: d.GetIsNegativeHits(), Limit: limitOf(d.GetLimit()),
		}
		valid = valid && (d.Limit == nil) == (desc.Limit == nil)
		for _, e := range d.GetEntries() {
			desc.Entries = append(desc.Entries, descriptor.Entry{Key: e.GetKey(), Value: e.GetValue()})
		}
		c.Descriptors = append(c.Descriptors, desc)
	}
	return c, valid
}

func limitOf(o *ratelimitv3.RateLimitDescriptor_RateLimitOverride) *descriptor.Limit {
	units := map[string]time.Duration{
		"SECOND": time.Second, "MINUTE": time.Minute, "HOUR": time.Hour,
		"DAY": 24 * time.Hour, "MONTH": 30 * 24 * time.Hour, "YEAR": 365 * 24 * time.Hour,
	}
	unit, known := units[o.GetUnit().String()]
	if o == nil || !known {
		return nil
	}
	seconds := int64(unit/time.Second) * int64(max(1, o.GetUnitMultiplier().GetValue()))
	seconds = min(seconds, int64(math.MaxInt64/time.Second)) // the longest possible duration
	return &descriptor.Limit{Requests: uint64(o.GetRequestsPerUnit()), Period: time.Duration(seconds) * time.Second}
}

// checkDecode fails when decode and the standard library differ on wire.
func checkDecode(t *testing.T, r *request, wire []byte) {
	t.Helper()
	var m rlsv3.RateLimitRequest
	err := proto.Unmarshal(wire, &m)
	r.decode(wire)
	malformed := r.problem != nil && r.problem.reason == "malformed"
	switch {
	case err != nil && strings.Contains(err.Error(), "invalid UTF-8"):
		return // legal here; the library refuses it
	case malformed != (err != nil):
		t.Fatalf("%x: got problem %v, the library says %v", wire, r.problem, err)
	case malformed:
		return
	}
	want, valid := callOf(&m)
	if valid != (r.problem == nil) {
		t.Fatalf("%x: got problem %v, valid is %v", wire, r.problem, valid)
	}
	if diff := cmp.Diff(want, r.in, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("%x (-library +got)\n%s", wire, diff)
	}
}

func requestWire(tb testing.TB, text string) []byte {
	tb.Helper()
	var m rlsv3.RateLimitRequest
	if err := protojson.Unmarshal([]byte(text), &m); err != nil {
		tb.Fatal(err)
	}
	wire, err := proto.Marshal(&m)
	if err != nil {
		tb.Fatal(err)
	}
	return wire
}

const fullRequest = `{"domain":"llm","hitsAddend":7,"descriptors":[
	{"entries":[{"key":"a","value":"b"},{"key":"","value":""},{"key":"a","value":"ü"}],"hitsAddend":"0"},
	{"entries":[],"limit":{"requestsPerUnit":5,"unit":"HOUR","unitMultiplier":3},"hitsAddend":"18446744073709551615","isNegativeHits":true},
	{"limit":{"unit":"YEAR","unitMultiplier":4294967295}}]}`

// wireSeeds are messages that a careless decoder reads wrongly.
func wireSeeds(tb testing.TB) [][]byte {
	tb.Helper()
	str := func(num protowire.Number, body []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, num, protowire.BytesType), body)
	}
	num := func(n protowire.Number, v uint64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(nil, n, protowire.VarintType), v)
	}
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	domain, entry := str(1, []byte("d")), str(1, join(str(1, []byte("k")), str(2, []byte("v"))))
	group := join(protowire.AppendTag(nil, 9, protowire.StartGroupType), num(1, 1), protowire.AppendTag(nil, 9, protowire.EndGroupType))
	full := requestWire(tb, fullRequest)
	return append(cuts(full),
		full,
		join(str(1, []byte("first")), full), // the last scalar wins
		join(domain, str(2, join(str(3, num(1, 5)), str(3, nil), entry))),    // submessages merge: hits stay 5
		join(domain, str(2, str(3, join(num(1, 5), num(1, 6))))),             // in a wrapper too
		join(domain, str(2, join(str(2, num(1, 9)), str(2, num(2, 2))))),     // a limit in two parts
		join(domain, str(2, str(2, join(num(1, 1<<40|3), num(2, 1<<32|1))))), // 32 bits are kept
		join(domain, str(2, str(2, join(num(2, 1), str(3, num(1, 1<<33|2)))))),
		join(domain, str(2, str(2, join(num(2, 1), str(3, num(1, 0)))))), // a multiplier of 0 is 1
		join(domain, str(2, str(2, num(2, 7)))),                          // WEEK is no unit of overrides
		join(domain, str(2, str(2, nil))),
		join(domain, str(2, join(num(4, 2), entry))), // any number but 0 is true
		join(domain, str(2, entry), num(3, 1<<32)),
		join(domain, group, str(2, join(group, entry))),         // groups are skipped
		join(domain, num(1, 5), num(2, 5), str(3, []byte("x"))), // known numbers, other types
		join(domain, str(2, entry), protowire.AppendTag(nil, 9, protowire.StartGroupType)),
		join(domain, str(2, entry), protowire.AppendTag(nil, 9, protowire.EndGroupType)),
		join(domain, str(2, entry), []byte{0}),
		join(domain, str(2, entry), protowire.AppendVarint(nil, 1<<29<<3)),                     // a field number too great
		join(domain, []byte{0x12, 0xff, 0xff, 0xff, 0xff, 0x0f}),                               // a length beyond the end
		join(domain, []byte{0x18, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}), // an overlong varint
		str(1, []byte("\xff\x00")),
	)
}

// cuts returns wire cut off at every byte.
func cuts(wire []byte) [][]byte {
	all := make([][]byte, len(wire))
	for n := range all {
		all[n] = wire[:n]
	}
	return all
}

func TestDecodeAgreesWithTheLibrary(t *testing.T) {
	var r request // one for all, like a pooled one
	for _, wire := range wireSeeds(t) {
		checkDecode(t, &r, wire)
	}
}

func FuzzDecode(f *testing.F) {
	for _, wire := range wireSeeds(f) {
		f.Add(wire)
	}
	var r request
	f.Fuzz(func(t *testing.T, wire []byte) { checkDecode(t, &r, wire) })
}

func TestDecodeKeepsBytes(t *testing.T) {
	long := strings.Repeat("\xff\r\n\x00", 1<<17) // 512 KiB
	for _, value := range []string{"", "\xff", "k\xff", "a\x00b", "\r\n", long} {
		wire := requestWire(t, `{"domain":"d","descriptors":[{"entries":[{"key":"k","value":"`+strings.Repeat("x", len(value))+`"}]}]}`)
		at := bytes.Index(wire, bytes.Repeat([]byte("x"), len(value)))
		if value != "" {
			copy(wire[at:], value)
		}
		var r request
		r.decode(wire)
		clear(wire) // grpc takes it back
		if r.problem != nil {
			t.Fatalf("%.20q: %v", value, r.problem)
		}
		if got := r.in.Descriptors[0].Entries[0].Value; got != value {
			t.Errorf("got %.20q of %d bytes, want %.20q", got, len(got), value)
		}
	}
}

func TestDecodeProblems(t *testing.T) {
	tests := []struct{ ask, want string }{
		{`{}`, "domain is empty: set domain in the gateway's rate limit configuration"},
		{`{"descriptors":[{}]}`, "domain is empty: set domain in the gateway's rate limit configuration"},
		{`{"domain":"d"}`, "no descriptors: the gateway must send at least one"},
		{`{"domain":"d","descriptors":[{},{"limit":{"requestsPerUnit":1}}]}`, "descriptors[1].limit.unit is 0; it must be SECOND (1), MINUTE (2), HOUR (3), DAY (4), MONTH (5) or YEAR (6)"},
		{`{"domain":"d","descriptors":[{"limit":{"unit":99}},{"limit":{"unit":98}}]}`, "descriptors[0].limit.unit is 99; it must be SECOND (1), MINUTE (2), HOUR (3), DAY (4), MONTH (5) or YEAR (6)"},
	}
	for _, tt := range tests {
		var r request
		r.decode(requestWire(t, tt.ask))
		if r.problem == nil || r.problem.text != tt.want {
			t.Errorf("%s: got %v, want %s", tt.ask, r.problem, tt.want)
		}
	}
	var r request
	r.decode([]byte("\x0a\x01d\x12\x05\x0a"))
	if want := "not a valid protobuf message"; r.problem == nil || r.problem.text != want {
		t.Errorf("a broken message: got %v, want %s", r.problem, want)
	}
}
