package tokenbucket_test

import (
	"testing"

	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// The cases of the benchmarks: numbers of 64 bits, and products of 128.
var benchmarks = []struct {
	name   string
	params tokenbucket.Params
	step   int64 // milliseconds from one call to the next
}{
	{"minute", rate(100, 100, minute), 1},
	{"wide", rate(1_000_000_000_000, 999_999_999_999, 366*day), day},
}

func BenchmarkTryConsume(b *testing.B) {
	for _, bm := range benchmarks {
		b.Run(bm.name, func(b *testing.B) {
			bucket, now, admitted := tokenbucket.Full(bm.params, start), start, 0
			for b.Loop() {
				now += bm.step
				var ok bool
				bucket, ok = bucket.TryConsume(bm.params, 1000, now)
				if ok {
					admitted++
				}
			}
			if admitted == 0 {
				b.Error("nothing was admitted")
			}
		})
	}
}

func BenchmarkRefill(b *testing.B) {
	for _, bm := range benchmarks {
		b.Run(bm.name, func(b *testing.B) {
			empty := tokenbucket.Bucket{Tokens: -tokenbucket.MaxAmount, Refilled: start}
			bucket := empty
			for b.Loop() {
				bucket = bucket.Refill(bm.params, bucket.Refilled+bm.step)
				if bucket.Tokens >= 0 {
					bucket = empty
				}
			}
		})
	}
}

func BenchmarkRetryAfter(b *testing.B) {
	for _, bm := range benchmarks {
		b.Run(bm.name, func(b *testing.B) {
			bucket, now := tokenbucket.Bucket{Remainder: 1, Refilled: start}, start
			for b.Loop() {
				if _, ok := bucket.RetryAfter(bm.params, bm.params.Capacity, now); !ok {
					b.Fatal("the capacity never passes")
				}
			}
		})
	}
}
