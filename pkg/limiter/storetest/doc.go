// Package storetest tests a [limiter.Store]: a suite of checks, a slow and simple store that passes
// them, and wrappers that make a store fail or count its calls.
//
// A store's own test is a few lines:
//
//	func TestConformance(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) limiter.Store { return open(t) })
//	}
//
// The suite is written against the comment of limiter.Store and against
// [NewReference], whose buckets are rational numbers under one mutex. A new
// promise, or a bug found in one store, becomes a check here, for all of them.
//
// The checks set the clock themselves. Their times begin in the year 2100, so that a store that
// sweeps by the system clock does not touch their buckets. They expect a store to decide at its
// caller's time, or at the time of the bucket's last refill if that is later. Nothing sleeps.
//
// The checks can fail: the package's own tests break the reference in one way after the other, and
// require that each is found.
package storetest
