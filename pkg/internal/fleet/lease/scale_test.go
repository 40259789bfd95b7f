package lease_test

import (
	"math/rand/v2"
	"testing"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/lease"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

const day = 24 * 60 * 60 * 1000

func TestScale(t *testing.T) {
	tests := map[string]struct {
		whole      tokenbucket.Params
		rate, room int
		want       tokenbucket.Params
		ok         bool
	}{
		"a tenth": {
			tokenbucket.Params{Capacity: 50_000, Amount: 10_000, Period: 1000},
			100, 200,
			tokenbucket.Params{Capacity: 10_000, Amount: 1000, Period: 1000},
			true,
		},
		"the whole": {
			tokenbucket.Params{Capacity: 7000, Amount: 3000, Period: 1777},
			1000, 1000,
			tokenbucket.Params{Capacity: 7000, Amount: 3000, Period: 1777},
			true,
		},
		"nothing": {
			tokenbucket.Params{Capacity: 7000, Amount: 3000, Period: 1777},
			0, 0,
			tokenbucket.Params{Capacity: 0, Amount: 0, Period: 1777},
			true,
		},
		"no whole tokens: the period is longer": {
			tokenbucket.Params{Capacity: 1500, Amount: 501, Period: 1000},
			1, 1,
			tokenbucket.Params{Capacity: 1, Amount: 501, Period: 1_000_000},
			true,
		},
		"half of it": {
			tokenbucket.Params{Capacity: 1500, Amount: 1500, Period: 1000},
			1, 1,
			tokenbucket.Params{Capacity: 1, Amount: 3, Period: 2000},
			true,
		},
		"capacity is rounded down": {
			tokenbucket.Params{Capacity: 1999, Amount: 1000, Period: 1000},
			1, 1,
			tokenbucket.Params{Capacity: 1, Amount: 1, Period: 1000},
			true,
		},
		"the greatest of all": {
			tokenbucket.Params{Capacity: tokenbucket.MaxCapacity, Amount: tokenbucket.MaxCapacity, Period: tokenbucket.MaxPeriod},
			1000, 1000,
			tokenbucket.Params{Capacity: tokenbucket.MaxCapacity, Amount: tokenbucket.MaxCapacity, Period: tokenbucket.MaxPeriod},
			true,
		},
		"an odd amount, the longest period": {
			tokenbucket.Params{Capacity: 1000, Amount: 501, Period: tokenbucket.MaxPeriod / 1000},
			500, 500,
			tokenbucket.Params{Capacity: 500, Amount: 501 * 500, Period: tokenbucket.MaxPeriod / 1000 * 1000},
			true,
		},
		"an odd amount, a longer period": {
			tokenbucket.Params{Capacity: 1000, Amount: 501, Period: tokenbucket.MaxPeriod/1000 + 1},
			500, 500,
			tokenbucket.Params{},
			false,
		},
		"an odd amount that is too great": {
			tokenbucket.Params{Capacity: 1000, Amount: tokenbucket.MaxCapacity/1000 + 1, Period: 1000},
			1, 1,
			tokenbucket.Params{},
			false,
		},
		"an odd amount that is just not": {
			tokenbucket.Params{Capacity: 1000, Amount: tokenbucket.MaxCapacity/1000 - 1, Period: 1000},
			1, 1,
			tokenbucket.Params{Capacity: 1, Amount: tokenbucket.MaxCapacity/1000 - 1, Period: 1_000_000},
			true,
		},
		"too many parts of the rate": {tokenbucket.Params{Capacity: 1000, Amount: 1000, Period: 1000}, 1001, 1, tokenbucket.Params{}, false},
		"too many parts of the room": {tokenbucket.Params{Capacity: 1000, Amount: 1000, Period: 1000}, 1, 1001, tokenbucket.Params{}, false},
		"parts below zero":           {tokenbucket.Params{Capacity: 1000, Amount: 1000, Period: 1000}, -1, 1, tokenbucket.Params{}, false},
		"no limit":                   {tokenbucket.Params{}, 1, 1, tokenbucket.Params{}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, ok := lease.Scale(tt.whole, tt.rate, tt.room)
			if got != tt.want || ok != tt.ok {
				t.Errorf("Scale(%+v, %d, %d): got %+v, %v, want %+v, %v", tt.whole, tt.rate, tt.room, got, ok, tt.want, tt.ok)
			}
		})
	}
}

// A day's limit has leases: its period needs no longer one.
func TestScaleOfADay(t *testing.T) {
	whole := tokenbucket.Params{Capacity: 10_000_000_000, Amount: 10_000_000_000, Period: day}
	got, ok := lease.Scale(whole, 1, 1)
	if want := (tokenbucket.Params{Capacity: 10_000_000, Amount: 10_000_000, Period: day}); got != want || !ok {
		t.Errorf("got %+v, %v, want %+v, true", got, ok, want)
	}
}

// Shares that add up to the whole refill at most as the whole does, and together lose less
// than a millitoken each.
func TestSharesRefillAsTheWhole(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		whole := tokenbucket.Params{Capacity: 1 + random.Int64N(1e9), Amount: 1 + random.Int64N(1e9), Period: 1000 + random.Int64N(30_000_000)}
		left, shares := lease.Parts, 0
		sum, elapsed := int64(0), 1+random.Int64N(10_000)
		for left > 0 {
			k := 1 + random.IntN(left)
			left -= k
			p, ok := lease.Scale(whole, k, lease.Parts)
			if !ok {
				t.Fatalf("no share of %+v", whole)
			}
			p.Capacity = tokenbucket.MaxCapacity
			sum += tokenbucket.Bucket{}.Refill(p, elapsed).Tokens
			shares++
		}
		big := whole
		big.Capacity = tokenbucket.MaxCapacity
		want := tokenbucket.Bucket{}.Refill(big, elapsed).Tokens
		if sum > want || sum < want-int64(shares) {
			t.Fatalf("%d shares of %+v refill %d in %d ms, want %d", shares, whole, sum, elapsed, want)
		}
	}
}

// A share without rate and without room works with all of tokenbucket.
func TestShareOfNothing(t *testing.T) {
	p, _ := lease.Scale(tokenbucket.Params{Capacity: 7000, Amount: 3000, Period: 1777}, 0, 0)
	b := tokenbucket.Bucket{Tokens: -5}.Refill(p, 1<<40)
	if b.Tokens != -5 {
		t.Errorf("it refilled: %+v", b)
	}
	if ms, ok := b.RetryAfter(p, 1, 1<<40); ok {
		t.Errorf("a request passes in %d ms", ms)
	}
	roomy, _ := lease.Scale(tokenbucket.Params{Capacity: 7000, Amount: 3000, Period: 1777}, 0, 1000)
	if ms, ok := b.RetryAfter(roomy, 1, 1<<40); !ok || ms != tokenbucket.Forever {
		t.Errorf("a request passes in %d ms, %v; want never", ms, ok)
	}
}
