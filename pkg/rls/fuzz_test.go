package rls_test

import (
	"testing"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/rls"
)

// A call is answered with any bytes of a client in its header. No bytes make the service panic, and
// the only error is that the request is invalid.
func FuzzShouldRateLimit(f *testing.F) {
	e := newEnv(f, func(c *rls.Config) {
		everyHeader(c)
		c.OnUnavailable = limiter.Deny
	})
	for _, seed := range []string{
		descriptor1(``, "api_key", "a", "model", "m"),
		descriptor1(`"hitsAddend":"5","isNegativeHits":true`, "api_key", "a", "model", "m", "meter", "tokens"),
		descriptor1(`"limit":{"requestsPerUnit":3,"unit":"HOUR","unitMultiplier":2}`, "two", "x"),
		descriptor1(``, "child", "c", "org", "small"),
		descriptor1(``, "trial", "x"),
	} {
		wire, err := proto.Marshal(fromJSON(f, seed, &rlsv3.RateLimitRequest{}))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(wire, "k\xff", "\r\n")
	}
	f.Fuzz(func(t *testing.T, wire []byte, a, b string) {
		if got, err := e.askRaw(t, wire); err == nil {
			checkClean(t, got)
		} else if status.Code(err) != codes.InvalidArgument {
			t.Errorf("%x: %v", wire, err)
		}
		for _, wire := range [][]byte{
			rawCall("llm", "api_key", a, "model", b), rawCall("llm", a, b), rawCall("llm", "child", a, "org", b),
			rawCall("llm", "plan", a), rawCall("closed", "api_key", a, a, b), rawCall("llm", "trial", a), rawCall("d"+a, b, b),
		} {
			got, err := e.askRaw(t, wire)
			if err != nil {
				t.Fatalf("%q, %q: %v", a, b, err)
			}
			checkClean(t, got)
		}
		if n := series(t, e.registry)[`ratelimit_errors_total{kind="panic"}`]; n > 0 {
			t.Errorf("%x, %q, %q: %v panics", wire, a, b, n)
		}
	})
}
