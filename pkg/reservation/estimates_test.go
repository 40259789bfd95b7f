package reservation_test

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/reservation"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// Nine requests in ten use at most the estimate.
func ExampleEstimates() {
	estimates := reservation.NewEstimates(0)
	key := reservation.Key{Namespace: "default", Entity: "key/k-123", Resource: "gpt-4", Limit: "tpm"}
	_, known := estimates.Estimate(key)
	fmt.Println(known)
	for i := range int64(100) {
		estimates.Observe(key, (i+1)*10*limiter.Milli)
	}
	millitokens, known := estimates.Estimate(key)
	fmt.Println(millitokens/limiter.Milli, known)
	// Output:
	// false
	// 917 true
}

var key = reservation.Key{Namespace: "default", Entity: "key/k-1", Resource: "gpt-4", Limit: "tpm"}

func observe(e *reservation.Estimates, k reservation.Key, n int64, times int) {
	for range times {
		e.Observe(k, n)
	}
}

func TestEstimateIsKnownAfterEight(t *testing.T) {
	e := reservation.NewEstimates(10)
	for i := range 12 {
		n, known := e.Estimate(key)
		if want := i >= 8; known != want || known != (n > 0) {
			t.Errorf("after %d observations: %d, %t; want %t", i, n, known, want)
		}
		e.Observe(key, 1000)
	}
}

func TestEstimateOfOneNumber(t *testing.T) {
	for _, test := range []struct{ n, want int64 }{
		{0, 0},
		{1, 1},
		{15, 15},
		{16, 17},
		{1_000, 1_023},
		{100_000_000, 100_663_295},
		{tokenbucket.MaxAmount, tokenbucket.MaxAmount},
		{-5, 0},
		{math.MinInt64, 0},
		{math.MaxInt64, tokenbucket.MaxAmount},
	} {
		e := reservation.NewEstimates(1)
		observe(e, key, test.n, 1000)
		if got, known := e.Estimate(key); got != test.want || !known {
			t.Errorf("%d observed: got %d, %t; want %d", test.n, got, known, test.want)
		}
	}
}

// Keys with any names have separate estimates, also long ones.
func TestEstimatesKeepKeysApart(t *testing.T) {
	long := strings.Repeat("x", 1000)
	keys := []reservation.Key{
		key,
		{Namespace: "other", Entity: key.Entity, Resource: key.Resource, Limit: key.Limit},
		{Namespace: key.Namespace, Entity: key.Resource, Resource: key.Entity, Limit: key.Limit},
		{Namespace: key.Namespace, Entity: key.Entity + key.Resource, Limit: key.Limit},
		{Namespace: key.Namespace, Entity: key.Entity, Resource: key.Resource, Limit: "usd"},
		{Entity: "\xff"},
		{Entity: long + "a"},
		{Entity: long + "b"},
		{Resource: long + "a"},
		{},
	}
	e := reservation.NewEstimates(len(keys))
	for i, k := range keys {
		observe(e, k, int64(i), 20)
	}
	for i, k := range keys {
		if got, known := e.Estimate(k); got != int64(i) || !known {
			t.Errorf("key %d: got %d, %t", i, got, known)
		}
	}
}

func TestEstimatesForgetWhatIsNotUsed(t *testing.T) {
	e := reservation.NewEstimates(2)
	named := func(entity string) reservation.Key { return reservation.Key{Entity: entity} }
	observe(e, named("a"), 1, 10)
	observe(e, named("b"), 2, 10)
	e.Estimate(named("a"))
	e.Estimate(named("nobody")) // Estimate adds no key
	observe(e, named("c"), 3, 10)
	for entity, want := range map[string]bool{"a": true, "b": false, "c": true} {
		if _, known := e.Estimate(named(entity)); known != want {
			t.Errorf("%s: known is %t, want %t", entity, known, want)
		}
	}
}

func TestEstimatesAtTheSameTime(t *testing.T) {
	e := reservation.NewEstimates(8)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 5000 {
				k := reservation.Key{Entity: strconv.Itoa((g + i) % 12)}
				e.Observe(k, 1000)
				e.Observe(key, 1000)
				if n, known := e.Estimate(k); known && n != 1023 {
					t.Errorf("%d is estimated, want 1023", n)
					return
				}
			}
		})
	}
	wg.Wait()
	if n, known := e.Estimate(key); n != 1023 || !known {
		t.Errorf("got %d, %t; want 1023", n, known)
	}
}
