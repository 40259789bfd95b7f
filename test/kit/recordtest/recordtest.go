// Package recordtest draws names and limits for tests of records, and checks that a parser
// refuses records that are cut short.
package recordtest

import (
	"errors"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// Names draws any bytes, of any length.
func Names() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		name := rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "name")
		if rapid.IntRange(0, 9).Draw(t, "long") == 0 {
			name = slices.Repeat(append(name, 'x'), 40)
		}
		return string(name)
	})
}

// Limits draws at least so many limits, and at most 4.
func Limits(least int) *rapid.Generator[*limiter.Limits] {
	return rapid.Custom(func(t *rapid.T) *limiter.Limits {
		drawn := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "rpm", "tpm.day"}), least, 4, rapid.ID[string]).Draw(t, "names")
		all := make([]limiter.Limit, len(drawn))
		for i, name := range drawn {
			all[i] = oneLimit(t, name)
		}
		limits, err := limiter.NewLimits(all...)
		if err != nil {
			t.Fatal(err)
		}
		return limits
	})
}

func oneLimit(t *rapid.T, name string) limiter.Limit {
	if rapid.IntRange(0, 5).Draw(t, "unlimited") == 0 {
		return limiter.Unlimited(name)
	}
	tokens := rapid.Int64Range(1, limiter.MaxTokens)
	period := time.Duration(rapid.Int64Range(tokenbucket.MinPeriod, tokenbucket.MaxPeriod).Draw(t, "period")) * time.Millisecond
	l := limiter.Custom(name, tokens.Draw(t, "capacity"), tokens.Draw(t, "refill"), period)
	return l.WithMaxDebt(rapid.SampledFrom([]int64{0, limiter.NoDebt, 1, 1000, limiter.MaxTokens}).Draw(t, "debt"))
}

// RefusesDamage checks that parse refuses, with the error want, each prefix of a value, and the
// value with an extra byte.
func RefusesDamage(t *rapid.T, value []byte, want error, parse func([]byte) error) {
	t.Helper()
	for n := range value {
		if err := parse(value[:n]); !errors.Is(err, want) {
			t.Fatalf("the first %d of %d bytes: %v, want %v", n, len(value), err, want)
		}
	}
	if err := parse(append(slices.Clip(value), 0)); !errors.Is(err, want) {
		t.Fatalf("a byte too many: %v, want %v", err, want)
	}
}
