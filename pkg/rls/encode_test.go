package rls

import (
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

func decoded(t *testing.T, wire []byte) *rlsv3.RateLimitResponse {
	t.Helper()
	m := &rlsv3.RateLimitResponse{}
	if err := proto.Unmarshal(wire, m); err != nil {
		t.Fatalf("%x: %v", wire, err)
	}
	return m
}

// Every length needs its own number of bytes for the lengths around it.
func TestEncodeLengths(t *testing.T) {
	for n := range 400 {
		text := strings.Repeat("a", min(n, maxText/2))
		c := call{request: request{in: descriptor.Call{Domain: text}}, ruling: ruling{verdict: verdict{denied: true, reason: text + strings.Repeat("b", n%9)}}}
		for range n {
			c.plan.Outcomes = append(c.plan.Outcomes, descriptor.Outcome{Kind: descriptor.Unlimited})
		}
		c.encode()
		got := decoded(t, c.out)
		if len(got.GetStatuses()) != n || got.GetOverallCode() != rlsv3.RateLimitResponse_OVER_LIMIT {
			t.Fatalf("%d outcomes: got %v", n, got)
		}
		want := map[string]any{"reason": c.verdict.reason}
		if n > 0 {
			want["domain"] = text
		}
		if diff := cmp.Diff(want, got.GetDynamicMetadata().AsMap()); diff != "" {
			t.Fatalf("%d (-want +got)\n%s", n, diff)
		}
	}
}

// Numbers beyond the range of protobuf are cut, but not in headers.
func TestEncodeGreatNumbers(t *testing.T) {
	huge := limiter.Custom("huge", limiter.MaxTokens, limiter.MaxTokens, 366*24*time.Hour)
	c := call{ruling: ruling{
		options: Options{Headers: Headers{RetryAfter: true, XRateLimit: true}},
		plan: descriptor.Plan{
			Outcomes: []descriptor.Outcome{{Kind: descriptor.Takes, Count: 1}},
			Request:  limiter.Request{Takes: make([]limiter.Take, 1)},
		},
		decision: limiter.Decision{Reason: limiter.ReasonExhausted, RetryAfter: math.MaxInt64, Statuses: []limiter.LimitStatus{{
			Limit: &huge, Available: limiter.MaxTokens * limiter.Milli, Exceeded: true, RetryAfter: math.MaxInt64,
		}}},
		verdict: verdict{denied: true, reason: "limit_exhausted"},
	}}
	c.encode()
	const longest = math.MaxInt64/int64(time.Second) + 1
	got := decoded(t, c.out).GetStatuses()[0]
	want := &rlsv3.RateLimitResponse_DescriptorStatus{
		Code: rlsv3.RateLimitResponse_OVER_LIMIT,
		CurrentLimit: &rlsv3.RateLimitResponse_RateLimit{
			Name: "huge", RequestsPerUnit: math.MaxUint32, Unit: rlsv3.RateLimitResponse_RateLimit_DAY, UnitMultiplier: wrapperspb.UInt32(366),
		},
		LimitRemaining: math.MaxUint32, DurationUntilReset: &durationpb.Duration{Seconds: longest},
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	headers := map[string]string{}
	readHeaders(c.out, func(name, value string) { headers[name] = value })
	wantHeaders := map[string]string{
		"retry-after":           "9223372037",
		"x-ratelimit-limit":     `1000000000000, 1000000000000;w=31622400;name="huge"`,
		"x-ratelimit-remaining": "1000000000000",
		"x-ratelimit-reset":     "9223372037",
	}
	if diff := cmp.Diff(wantHeaders, headers); diff != "" {
		t.Errorf("headers (-want +got)\n%s", diff)
	}
}

func TestLimitHeader(t *testing.T) {
	for limit, want := range map[limiter.Limit]string{
		limiter.PerMinute("rpm", 10):               `10, 10;w=60;name="rpm"`,
		limiter.PerMinute("rpm", 10).WithBurst(15): `15, 10;w=60;burst=15;name="rpm"`,
		limiter.PerMinute("rpm", 10).WithBurst(5):  `5, 10;w=60;burst=5;name="rpm"`,
	} {
		var got string
		readHeaders(appendLimitHeader(nil, &limit), func(_, value string) { got = value })
		if got != want {
			t.Errorf("%v: got %s, want %s", limit, got, want)
		}
	}
}

func TestStructValues(t *testing.T) {
	b := appendNumber(nil, "n", -5)
	b = appendText(b, "s", "k\xff")
	b = appendBool(b, "t", true)
	b = appendBool(b, "f", false)
	var got structpb.Struct
	if err := proto.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"n": -5.0, "s": `k\xff`, "t": true, "f": false}
	if diff := cmp.Diff(want, got.AsMap()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestEscape(t *testing.T) {
	tests := []struct{ text, want string }{
		{"", ""},
		{"key/k-1 ü 界", "key/k-1 ü 界"},
		{"k\xff", `k\xff`},
		{`k\xff`, `k\\xff`},
		{"a\r\nb\x00\x7f", `a\x0d\x0ab\x00\x7f`},
		{"\u202e", `\xe2\x80\xae`}, // turns the direction of text
		{"\xe7\x95", `\xe7\x95`},   // half a character
		{"\ufffd", "\ufffd"},       // the replacement character itself
		{strings.Repeat("a", 300), strings.Repeat("a", 241) + "..."},
	}
	for _, tt := range tests {
		got := string(appendEscaped(nil, tt.text))
		if got != tt.want {
			t.Errorf("%q: got %s, want %s", tt.text, got, tt.want)
		}
		if !utf8.ValidString(got) || len(got) > maxText {
			t.Errorf("%q: got %q, which is not UTF-8 of at most %d bytes", tt.text, got, maxText)
		}
	}
	if got, want := string(appendToken(nil, "a.B-9_\r\n\"é")), "a.B-9______"; got != want {
		t.Errorf("token: got %q, want %q", got, want)
	}
}

func TestWindowOf(t *testing.T) {
	const day = 24 * time.Hour
	tests := []struct {
		period time.Duration
		want   window
	}{
		{time.Second, window{unitSecond, 1}},
		{90 * time.Second, window{unitSecond, 90}},
		{time.Minute, window{unitMinute, 1}},
		{30 * time.Minute, window{unitMinute, 30}},
		{time.Hour, window{unitHour, 1}},
		{day, window{unitDay, 1}},
		{14 * day, window{unitWeek, 2}},
		{30 * day, window{unitMonth, 1}},
		{210 * day, window{unitMonth, 7}},
		{365 * day, window{unitYear, 1}},
		{366 * day, window{unitDay, 366}},
		{1500 * time.Millisecond, window{}}, // there is no unit for it
		{0, window{}},
	}
	for _, tt := range tests {
		if got := windowOf(tt.period); got != tt.want {
			t.Errorf("%v: got %v, want %v", tt.period, got, tt.want)
		}
	}
}

func TestTightest(t *testing.T) {
	over := func(d time.Duration) limiter.LimitStatus {
		return limiter.LimitStatus{Exceeded: true, RetryAfter: d}
	}
	has := func(millitokens int64) limiter.LimitStatus { return limiter.LimitStatus{Available: millitokens} }
	never := limiter.LimitStatus{Exceeded: true, Never: true}
	tests := []struct {
		name     string
		statuses []limiter.LimitStatus
		want     int
	}{
		{"the fewest whole tokens", []limiter.LimitStatus{has(5000), has(2000), has(9000)}, 1},
		{"the first of equals", []limiter.LimitStatus{has(2900), has(2100)}, 0},
		{"debt is no less than nothing", []limiter.LimitStatus{has(0), has(-5000)}, 0},
		{"exceeded before few", []limiter.LimitStatus{has(0), over(time.Second)}, 1},
		{"the longest wait", []limiter.LimitStatus{over(time.Second), over(time.Hour), over(time.Minute)}, 1},
		{"never is longest", []limiter.LimitStatus{over(time.Hour), never, over(time.Hour)}, 1},
		{"the first of equal waits", []limiter.LimitStatus{over(time.Hour), over(time.Hour)}, 0},
	}
	for _, tt := range tests {
		if got := tightest(tt.statuses); got != &tt.statuses[tt.want] {
			t.Errorf("%s: got %+v, want the one at %d", tt.name, got, tt.want)
		}
	}
	if got := tightest(nil); got != nil {
		t.Errorf("of none: got %+v", got)
	}
}
