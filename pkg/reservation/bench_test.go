package reservation_test

import (
	"crypto/rand"
	"fmt"
	"testing"

	"github.com/ratelimit/ratelimit/pkg/reservation"
)

func BenchmarkSeal(b *testing.B) {
	k, r := keyring(b, 1), typical(b)
	for name, r := range map[string]reservation.Reservation{
		"levels=1": {Namespace: r.Namespace, Expires: r.Expires, Holdings: r.Holdings[:1]},
		"levels=3": r,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := k.Seal(rand.Reader, r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkOpen(b *testing.B) {
	k, r := keyring(b, 2, 1), typical(b)
	short := r
	short.Holdings = r.Holdings[:1]
	for name, id := range map[string]string{
		"levels=1": seal(b, keyring(b, 1), short), "levels=3": seal(b, keyring(b, 1), r),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := k.Open(id, now); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	forged := seal(b, keyring(b, 3), r)
	b.Run("forged", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := k.Open(forged, now); err == nil {
				b.Fatal("opened")
			}
		}
	})
}

// 100,000 keys, in an order that defeats caches.
func BenchmarkEstimates(b *testing.B) {
	e := reservation.NewEstimates(0)
	keys := make([]reservation.Key, reservation.DefaultEstimates)
	for i := range keys {
		keys[i] = reservation.Key{Namespace: "default", Entity: fmt.Sprintf("key/k-%d", i), Resource: "gpt-4", Limit: "tpm"}
		for n := range int64(40) {
			e.Observe(keys[i], 50_000<<(n%7)+n)
		}
	}
	i := 0
	next := func() reservation.Key {
		i = (i + 7919) % len(keys)
		return keys[i]
	}
	b.Run("Estimate", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, known := e.Estimate(next()); !known {
				b.Fatal("not known")
			}
		}
	})
	b.Run("Observe", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			e.Observe(next(), int64(i))
		}
	})
	b.Run("EstimateOfOne", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			e.Estimate(keys[0])
		}
	})
}
