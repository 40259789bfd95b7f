package rls_test

import (
	"strings"
	"testing"
	"unicode"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
)

// rawCall is the wire form of a call with one descriptor; keys and values are any bytes.
func rawCall(domain string, pairs ...string) []byte {
	var entries []byte
	for i := 0; i < len(pairs); i += 2 {
		entry := protowire.AppendTag(nil, 1, protowire.BytesType)
		entry = protowire.AppendString(entry, pairs[i])
		entry = protowire.AppendTag(entry, 2, protowire.BytesType)
		entry = protowire.AppendString(entry, pairs[i+1])
		entries = protowire.AppendTag(entries, 1, protowire.BytesType)
		entries = protowire.AppendBytes(entries, entry)
	}
	wire := protowire.AppendTag(nil, 1, protowire.BytesType)
	wire = protowire.AppendString(wire, domain)
	wire = protowire.AppendTag(wire, 2, protowire.BytesType)
	return protowire.AppendBytes(wire, entries)
}

// Any value is limited like any other, and takes nothing from another client.
func TestAnyBytesAreLimited(t *testing.T) {
	e := newEnv(t, everyHeader)
	values := []struct{ value, shown string }{
		{"k", "key/k"},
		{"k\xff", `key/k\xff`},
		{"k\xfe", `key/k\xfe`},
		{`k\xff`, `key/k\\xff`},
		{"k\x00", `key/k\x00`},
		{"k\r\nset-cookie: a=b", `key/k\x0d\x0aset-cookie: a=b`},
		{"", "key/"},
		{"a/b%#", "key/a%2Fb%25#"},
		{"e\u0301", "key/e\u0301"},
		{"\u00e9", "key/\u00e9"},
		{strings.Repeat("v", 3<<10), "key/" + strings.Repeat("v", 237) + "..."},
		{strings.Repeat("\xff", 1<<19), "key/" + strings.Repeat(`\xff`, 60) + "..."},
	}
	for _, v := range values {
		wire := rawCall("llm", "api_key", v.value, "model", "m\xff")
		for i := range 11 {
			got, err := e.askRaw(t, wire)
			if err != nil {
				t.Fatalf("%.20q: %v", v.value, err)
			}
			checkClean(t, got)
			if denied := got.GetOverallCode() == rlsv3.RateLimitResponse_OVER_LIMIT; denied != (i == 10) {
				t.Fatalf("%.20q: call %d: got %v", v.value, i+1, got)
			}
			if i == 10 {
				m := got.GetDynamicMetadata().AsMap()
				if m["entity"] != v.shown || m["resource"] != `m\xff` {
					t.Errorf("%.20q: metadata has entity %v and resource %v, want %s", v.value, m["entity"], m["resource"], v.shown)
				}
			}
		}
	}
}

// checkClean fails when the answer has no code, or has a control character in a header or a name.
func checkClean(t *testing.T, m *rlsv3.RateLimitResponse) {
	t.Helper()
	if m.GetOverallCode() == rlsv3.RateLimitResponse_UNKNOWN {
		t.Errorf("the overall code is not set: %v", m)
	}
	check := func(s string) {
		if strings.ContainsFunc(s, unicode.IsControl) {
			t.Errorf("%q has a control character", s)
		}
	}
	for _, h := range m.GetResponseHeadersToAdd() {
		check(h.GetKey())
		check(h.GetValue())
	}
	for _, s := range m.GetStatuses() {
		check(s.GetCurrentLimit().GetName())
		if s.GetCode() == rlsv3.RateLimitResponse_UNKNOWN {
			t.Errorf("the code of a status is not set: %v", s)
		}
	}
	for _, v := range m.GetDynamicMetadata().GetFields() {
		check(v.GetStringValue())
	}
}

func TestHitsBeyondEverything(t *testing.T) {
	newEnv(t, nil).run(t, []step{
		{ask: descriptor1(`"hitsAddend":"1000000000000000000"`, "api_key", "a", "model", "m"), want: `{"overallCode":"OVER_LIMIT",
			"statuses":[{"code":"OVER_LIMIT","currentLimit":{"name":"rpm","requestsPerUnit":10,"unit":"MINUTE"},"limitRemaining":10}],
			"dynamicMetadata":{"reason":"exceeds_capacity","domain":"llm","rule":"requests","entity":"key/a","level":0,"resource":"m","limit":"rpm","source":"rule","remaining":10}}`},
		{ask: descriptor1(`"hitsAddend":"18446744073709551615","isNegativeHits":true`, "api_key", "a", "model", "m"), want: ok("rpm", 10, 10, "0s")},
		{ask: descriptor1(`"hitsAddend":"1000000000000000000"`, "api_key", "a", "model", "m", "meter", "tokens"), want: ok("tpm", 1000, 0, "660s")}, // to the floor of debt
	})
}

// Mistakes in the gateway's configuration get an error with a text.
func TestInvalidArgument(t *testing.T) {
	e := newEnv(t, nil)
	tests := []struct{ ask, want string }{
		{`{"descriptors":[{"entries":[{"key":"k","value":"v"}]}]}`, "domain is empty: set domain in the gateway's rate limit configuration"},
		{`{"domain":"llm"}`, "no descriptors: the gateway must send at least one"},
		{
			descriptor1(`"limit":{"requestsPerUnit":1,"unit":77}`, "api_key", "a", "model", "m"),
			"descriptors[0].limit.unit is 77; it must be SECOND (1), MINUTE (2), HOUR (3), DAY (4), MONTH (5) or YEAR (6)",
		},
	}
	for _, tt := range tests {
		got, err := e.ask(t, tt.ask)
		if s := status.Convert(err); s.Code() != codes.InvalidArgument || s.Message() != tt.want {
			t.Errorf("%s: got %v, %v, want InvalidArgument: %s", tt.ask, got, err, tt.want)
		}
	}
	if _, err := e.askRaw(t, []byte{0x0a, 0xff}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("bytes that are no message: got %v, want InvalidArgument", err)
	}
	e.run(t, []step{{ask: descriptor1(`"hitsAddend":"0"`, "api_key", "a", "model", "m"), want: ok("rpm", 10, 10, "0s")}}) // nothing was taken
}
