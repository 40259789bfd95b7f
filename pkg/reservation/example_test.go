package reservation_test

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/reservation"
)

// One replica seals a reservation; another, with the same key, opens it.
func Example() {
	key := bytes.Repeat([]byte("k"), 32) // in production: random and secret
	here, err := reservation.NewKeyring(key)
	if err != nil {
		fmt.Println(err)
		return
	}
	limits, err := limiter.NewLimits(limiter.PerMinute("tpm", 10_000))
	if err != nil {
		fmt.Println(err)
		return
	}
	now := time.UnixMilli(0)
	id, err := here.Seal(rand.Reader, reservation.Reservation{
		Namespace: "default",
		Expires:   now.Add(10 * time.Minute),
		Holdings: []limiter.Holding{{
			Bucket: limiter.BucketKey{Namespace: "default", Entity: "key/k-123", Resource: "gpt-4"},
			Limits: limits,
			Taken:  []limiter.Consumption{{Limit: "tpm", Amount: 1000 * limiter.Milli}},
		}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	there, err := reservation.NewKeyring(key)
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := there.Open(id, now.Add(time.Minute))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, h := range r.Holdings {
		fmt.Println(h.Bucket.Entity, h.Bucket.Resource, h.Taken[0].Limit, h.Taken[0].Amount/limiter.Milli)
	}
	_, err = there.Open(id, now.Add(time.Hour))
	fmt.Println(reservation.Reason(err))
	// Output:
	// key/k-123 gpt-4 tpm 1000
	// expired
}
