//go:build !race

package rls

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/embedded"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// A call allocates the copy of its text, the entity's name, the answer and its bytes, and two
// values for grpc's codec interface. The decision and the headers allocate nothing, with any set of
// headers.
func TestAllocsOfACall(t *testing.T) {
	all := everyHeader()
	all.OpenAI = OpenAIHeaders{Requests: "rps", Tokens: "rps"}
	for name, headers := range map[string]Headers{"none": {}, "the default": {RetryAfter: true, XRateLimit: true}, "all": all} {
		if got, most := allocsOfACall(t, headers), 6.0; got > most {
			t.Errorf("headers: %s: a call allocates %v times, want at most %v", name, got, most)
		}
	}
}

// A call of an envoyproxy/ratelimit file allocates as much.
func TestAllocsOfACallOfATree(t *testing.T) {
	tree := descriptor.TreeSpec{Key: "k", Limit: &descriptor.TreeLimitSpec{Unit: "second", RequestsPerUnit: 4e9}}
	rules, problems := descriptor.Compile([]descriptor.DomainSpec{{Domain: "d", Tree: []descriptor.TreeSpec{tree}}}, nil)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if got, most := allocsOfRules(t, Headers{}, rules), 6.0; got > most {
		t.Errorf("a call allocates %v times, want at most %v", got, most)
	}
}

func allocsOfACall(t *testing.T, headers Headers) float64 {
	t.Helper()
	return allocsOfRules(t, headers, oneRule(t))
}

func allocsOfRules(t *testing.T, headers Headers, rules *descriptor.Rules) float64 {
	t.Helper()
	store := embedded.New(embedded.Config{})
	defer func() {
		if err := store.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	l, err := limiter.New(limiter.Config{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	service, err := New(Config{Decider: l, Options: Options{Headers: headers}})
	if err != nil {
		t.Fatal(err)
	}
	service.Reload(rules, nil)
	wire := requestWire(t, `{"domain":"d","descriptors":[{"entries":[{"key":"k","value":"some value"}]}]}`)
	k := codec{encoding.GetCodecV2(proto.Name)}
	data := mem.BufferSlice{mem.SliceBuffer(wire)}
	dec := func(v any) error { return k.Unmarshal(data, v) }
	return testing.AllocsPerRun(1000, func() {
		out, err := handlerOf(nil)(service, t.Context(), dec, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := k.Marshal(out); err != nil {
			t.Fatal(err)
		}
	})
}

// oneRule is a rule that takes 1 of 10^9 a second.
func oneRule(tb testing.TB) *descriptor.Rules {
	tb.Helper()
	limits, err := limiter.NewLimits(limiter.Custom("rps", 1e9, 1e9, time.Second))
	if err != nil {
		tb.Fatal(err)
	}
	rules, problems := descriptor.Compile([]descriptor.DomainSpec{{Domain: "d", Rules: []descriptor.RuleSpec{{
		Name:  "r",
		Match: []descriptor.MatchSpec{{Key: "k", Value: "*"}},
		Takes: []descriptor.TakeSpec{{Entity: "key/{k}", Resource: "api", Limits: limits, Consume: []descriptor.ConsumeSpec{{Limit: "rps", PerHit: limiter.Milli}}}},
	}}}}, nil)
	if len(problems) > 0 {
		tb.Fatal(problems)
	}
	return rules
}
