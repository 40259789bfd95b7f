package reservation_test

import (
	"crypto/rand"
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
