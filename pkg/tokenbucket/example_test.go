package tokenbucket_test

import (
	"fmt"

	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// A limit of 100 tokens a minute that lets 2 be used at once.
var hundredAMinute = tokenbucket.Params{
	Capacity: 2 * tokenbucket.Milli,
	Amount:   100 * tokenbucket.Milli,
	Period:   60_000,
}

func Example() {
	now := int64(1_700_000_000_000) // Unix milliseconds, from the caller's clock
	bucket := tokenbucket.Full(hundredAMinute, now)
	for range 3 {
		var ok bool
		bucket, ok = bucket.TryConsume(hundredAMinute, tokenbucket.Milli, now)
		if ok {
			fmt.Println("admitted, millitokens left:", bucket.Tokens)
			continue
		}
		retry, _ := bucket.RetryAfter(hundredAMinute, tokenbucket.Milli, now)
		fmt.Println("denied, retry after milliseconds:", retry)
	}
	_, ok := bucket.TryConsume(hundredAMinute, tokenbucket.Milli, now+600)
	fmt.Println("admitted 600 ms later:", ok)
	// Output:
	// admitted, millitokens left: 1000
	// admitted, millitokens left: 0
	// denied, retry after milliseconds: 600
	// admitted 600 ms later: true
}

func ExampleBucket_ForceConsume() {
	bucket := tokenbucket.Full(hundredAMinute, 0)
	bucket = bucket.ForceConsume(hundredAMinute, 5*tokenbucket.Milli, 0) // tokens used already
	fmt.Println("in debt:", bucket.Tokens)
	bucket = bucket.ForceConsume(hundredAMinute, -100*tokenbucket.Milli, 0) // a refund
	fmt.Println("no more than the capacity:", bucket.Tokens)
	// Output:
	// in debt: -3000
	// no more than the capacity: 2000
}

func ExampleBucket_Status() {
	bucket := tokenbucket.Full(hundredAMinute, 0).ForceConsume(hundredAMinute, 1500, 0)
	status := bucket.Status(hundredAMinute, tokenbucket.Milli, 0)
	fmt.Println("available:", status.Available, "missing:", status.Deficit)
	fmt.Println("passes in", status.RetryAfter, "ms, full in", status.TimeToFull, "ms")
	fmt.Println("more than the capacity never passes:", bucket.Status(hundredAMinute, 2001, 0).Never)
	// Output:
	// available: 500 missing: 500
	// passes in 300 ms, full in 900 ms
	// more than the capacity never passes: true
}

func ExampleBucket_Reparameterize() {
	raised := hundredAMinute
	raised.Capacity = 50 * tokenbucket.Milli
	bucket := tokenbucket.Full(hundredAMinute, 0).ForceConsume(hundredAMinute, 2000, 0)
	fmt.Println("all is used:", bucket.Tokens)
	bucket = bucket.Reparameterize(hundredAMinute, raised, 0)
	fmt.Println("a limit raised by 48 tokens has 48 more:", bucket.Tokens)
	bucket = bucket.Reparameterize(raised, hundredAMinute, 0)
	fmt.Println("a lowered limit cuts at once:", bucket.Tokens)
	bucket, _ = bucket.TryConsume(hundredAMinute, 2000, 0)
	bucket = bucket.Reparameterize(hundredAMinute, raised, 0)
	fmt.Println("4 of 50 tokens are used:", bucket.Tokens)
	// Output:
	// all is used: 0
	// a limit raised by 48 tokens has 48 more: 48000
	// a lowered limit cuts at once: 2000
	// 4 of 50 tokens are used: 46000
}
