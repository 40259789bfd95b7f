package embedded_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/embedded"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// BenchmarkListBuckets lists the buckets of one entity among many, as the console does each
// second.
func BenchmarkListBuckets(b *testing.B) {
	for _, n := range []int{10_000, 1_000_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			s := embedded.New(embedded.Config{})
			defer func() { _ = s.Close(b.Context()) }()
			limits, err := limiter.NewLimits(limiter.PerDay("rpd", 100))
			if err != nil {
				b.Fatal(err)
			}
			now := time.Now()
			for i := range n {
				key := limiter.BucketKey{Namespace: limiter.DefaultNamespace, Entity: fmt.Sprintf("key/%d", i), Resource: "gpt-4"}
				if _, err := s.Take(b.Context(), now, []limiter.Op{{Bucket: key, Limits: limits, Generation: 1, Spends: []limiter.Spend{{Limit: "rpd", Take: limiter.Milli}}}}); err != nil {
					b.Fatal(err)
				}
			}
			for b.Loop() {
				page, err := s.ListBuckets(b.Context(), now, limiter.DefaultNamespace, limiter.BucketFilter{Entity: "key/77"}, limiter.Page{})
				if err != nil || len(page.Items) != 1 {
					b.Fatalf("%d buckets, %v", len(page.Items), err)
				}
			}
		})
	}
}
