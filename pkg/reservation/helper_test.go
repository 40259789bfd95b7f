package reservation_test

import (
	"bytes"
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/reservation"
)

var now = time.UnixMilli(1_700_000_000_123).UTC()

// secret returns a key that consists of one byte.
func secret(b byte) []byte { return bytes.Repeat([]byte{b}, reservation.MinKey) }

func keyring(tb testing.TB, keys ...byte) *reservation.Keyring {
	tb.Helper()
	secrets := make([][]byte, len(keys))
	for i, b := range keys {
		secrets[i] = secret(b)
	}
	k, err := reservation.NewKeyring(secrets...)
	if err != nil {
		tb.Fatal(err)
	}
	return k
}

func limitsOf(tb testing.TB, limits ...limiter.Limit) *limiter.Limits {
	tb.Helper()
	s, err := limiter.NewLimits(limits...)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func seal(tb testing.TB, k *reservation.Keyring, r reservation.Reservation) string {
	tb.Helper()
	id, err := k.Seal(rand.Reader, r)
	if err != nil {
		tb.Fatal(err)
	}
	return id
}

// typical returns the reservation of a key under a project and an organisation: each has four
// limits and a name of 32 bytes.
func typical(tb testing.TB) reservation.Reservation {
	tb.Helper()
	r := reservation.Reservation{Namespace: "default", Expires: now.Add(10 * time.Minute)}
	for level, entity := range []string{"key/", "project/", "org/"} {
		scale := int64(level + 1)
		r.Holdings = append(r.Holdings, limiter.Holding{
			Bucket: limiter.BucketKey{
				Namespace: "default", Entity: entity + strings.Repeat("x", 32-len(entity)), Resource: "gpt-4-turbo-2024-04-09",
			},
			Limits: limitsOf(tb,
				limiter.PerMinute("rpm", 600*scale), limiter.PerMinute("tpm", 400_000*scale).WithBurst(600_000*scale),
				limiter.PerDay("tpd", 10_000_000*scale), limiter.PerDay("usd", 2_500*scale).WithMaxDebt(limiter.NoDebt)),
			Generation: 1_700_000_000_000, Shard: 3, Level: level,
			Taken: []limiter.Consumption{
				{Limit: "rpm", Amount: limiter.Milli},
				{Limit: "tpm", Amount: 4096 * limiter.Milli},
				{Limit: "tpd", Amount: 4096 * limiter.Milli},
				{Limit: "usd", Amount: 123},
			},
		})
	}
	return r
}
