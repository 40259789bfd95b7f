package cli

import (
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/ratelimit/ratelimit/pkg/api"
)

func bucket(entity, rate string, burst int64, available api.Tokens) api.Bucket {
	return api.Bucket{Entity: api.Name(entity), Resource: "gpt", Limits: []api.BucketLimit{
		{Name: "all", Limit: api.Limit{Rate: "unlimited"}},
		{Name: "rpm", Limit: api.Limit{Rate: rate, Burst: burst}, Available: &available},
	}}
}

func TestReport(t *testing.T) {
	r := newCapacityReport("gpt", 2)
	r.Add(bucket("a", "10/minute", 0, 2500))
	r.Add(bucket("b", "10/minute", 20, 20_000))
	r.Add(bucket("c", "10/minute", 0, -5000))
	tried := bucket("d", "10/minute", 0, 0)
	tried.Shadow = true
	r.Add(tried)
	want := &capacityReport{
		Resource: "gpt", Buckets: 3,
		Limits: []capacityLimit{{Name: "rpm", Buckets: 3, Capacity: 40_000, Available: 17_500, Empty: 1, InDebt: 1, Used: 562}},
		Busiest: []capacityBucket{
			{Entity: "c", Name: "rpm", Rate: "10/minute", Capacity: 10_000, Available: -5000, Used: 1500},
			{Entity: "a", Name: "rpm", Rate: "10/minute", Capacity: 10_000, Available: 2500, Used: 750},
		},
	}
	if diff := cmp.Diff(want, r, cmpopts.IgnoreUnexported(capacityReport{})); diff != "" {
		t.Error(diff)
	}
}

// In any order of buckets, the busiest are those with the greatest part used, and sums stay
// in range.
func TestBusiest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		available := rapid.SliceOfN(rapid.Int64Range(-1<<60, 1_000_000_000_000_000), 0, 30).Draw(t, "available")
		most := rapid.IntRange(0, 10).Draw(t, "most")
		r := newCapacityReport("gpt", most)
		for i, n := range available {
			r.Add(bucket(strconv.Itoa(i), "1000000000000/day", 0, api.Tokens(n)))
		}
		slices.Sort(available)
		if len(r.Busiest) != min(most, len(available)) {
			t.Fatalf("%d of %d are the busiest, want %d", len(r.Busiest), len(available), most)
		}
		for i, b := range r.Busiest {
			if i > 0 && b.Used > r.Busiest[i-1].Used || b.Used < 0 {
				t.Fatalf("%+v stands behind %+v", b, r.Busiest[i-1])
			}
		}
		for _, l := range r.Limits {
			if l.Buckets != len(available) || l.Capacity < 0 || l.Used < 0 {
				t.Fatalf("%+v", l)
			}
		}
	})
}
