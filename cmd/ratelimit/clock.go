package main

import "time"

// steadyClock returns a clock that starts with the time of day and then runs by
// the machine's monotonic clock. Setting the machine's time back would otherwise
// stop every refill until the old time comes again, and setting it ahead would
// fill every bucket.
func steadyClock() func() time.Time {
	start := time.Now()
	return func() time.Time { return start.Add(time.Since(start)) }
}
