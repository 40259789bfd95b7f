package descriptor_test

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
)

// manyRules returns n rules that differ in exact values, prefixed values and keys, like a file for
// many tenants, with a shadow rule among them.
func manyRules(tb testing.TB, n int) *descriptor.Rules {
	tb.Helper()
	specs := make([]descriptor.RuleSpec, n)
	for i := range specs {
		id := strconv.Itoa(i)
		switch i % 3 {
		case 0:
			specs[i] = rule(key("tenant", "t-"+id), key("model", "*"))
		case 1:
			specs[i] = rule(key("path", "/svc-"+id+"/*"), key("method", "GET"))
		case 2:
			specs[i] = rule(key("tenant", "t-"+id), key("path", "/v1/chat"), key("org?", "*"))
		}
	}
	specs[0].Shadow = true
	return compile(tb, specs...)
}

// manyDescriptors returns descriptors that match rules of [manyRules], in no order, and some that
// match no rule.
func manyDescriptors(n int) []descriptor.Descriptor {
	random := rand.New(rand.NewPCG(1, 2))
	all := make([]descriptor.Descriptor, 512)
	for i := range all {
		r := random.IntN(n)
		id := strconv.Itoa(r)
		switch {
		case i%16 == 0:
			all[i] = entries("tenant", "nobody", "model", "gpt-4")
		case r%3 == 0:
			all[i] = entries("tenant", "t-"+id, "model", "gpt-4")
		case r%3 == 1:
			all[i] = entries("method", "GET", "path", "/svc-"+id+"/v1/items")
		default:
			all[i] = entries("tenant", "t-"+id, "path", "/v1/chat")
		}
	}
	return all
}

func BenchmarkMatch(b *testing.B) {
	for _, n := range []int{10, 100, 10_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			d := domain(b, manyRules(b, n))
			descriptors := manyDescriptors(n)
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				d.Match(&descriptors[i%len(descriptors)])
				i++
			}
		})
	}
}

// BenchmarkMatchGrowth reports the time of a match with 10,000 rules divided by that with 10 rules,
// in one run: "ratio".
func BenchmarkMatchGrowth(b *testing.B) {
	few, many := newMatching(b, 10), newMatching(b, 10_000)
	var ratio float64
	for b.Loop() {
		ratio = growth(few, many)
	}
	b.ReportMetric(ratio, "ratio")
}

func BenchmarkPlan(b *testing.B) {
	rules := compileDomains(b, reference(b))
	call := descriptor.Call{Domain: "llm-gateway", Descriptors: []descriptor.Descriptor{
		entries("api_key", "k-123", "model", "gpt-4"),
		entries("api_key", "k-123", "model", "gpt-4", "meter", "tokens"),
	}}
	var plan descriptor.Plan
	b.ReportAllocs()
	for b.Loop() {
		rules.Plan(&call, &plan)
	}
}

// matching is a domain and descriptors to match.
type matching struct {
	domain      *descriptor.Domain
	descriptors []descriptor.Descriptor
}

func newMatching(tb testing.TB, n int) matching {
	tb.Helper()
	return matching{domain: domain(tb, manyRules(tb, n)), descriptors: manyDescriptors(n)}
}

// once returns the time of matching all descriptors once.
func (m matching) once() time.Duration {
	start := time.Now()
	for i := range m.descriptors {
		m.domain.Match(&m.descriptors[i])
	}
	return time.Since(start)
}

// growth returns the time of many divided by that of few: the quotient of the medians of
// alternating rounds.
func growth(few, many matching) float64 {
	const rounds = 101
	var a, b [rounds]time.Duration
	for i := range rounds {
		a[i], b[i] = few.once(), many.once()
	}
	slices.Sort(a[:])
	slices.Sort(b[:])
	return float64(b[rounds/2]) / float64(a[rounds/2])
}

// TestMatchingDoesNotGrow fails when matching compares rules one by one. Then 10,000 rules take
// some hundred times longer than 10. [BenchmarkMatchGrowth] gives the exact ratio, on a quiet
// machine.
func TestMatchingDoesNotGrow(t *testing.T) {
	const bound = 30 // beside other work the caches of the processor are not its own
	if got := growth(newMatching(t, 10), newMatching(t, 10_000)); got > bound {
		t.Errorf("matching with 10,000 rules takes %.1f times as long as with 10, want at most %d", got, bound)
	}
}
