// Package fleet tests the store for a fleet as a fleet uses it: several processes on
// one table of DynamoDB Local, with clocks that disagree. A proxy loses, delays,
// refuses and throttles their calls, and processes are killed.
//
// The test binary starts itself for each replica. A replica records every decision
// with the span of time that it took, by a clock that all processes share. Afterwards
// the test checks the records:
//
//   - that no window of time has more admissions than capacity and refill allow,
//   - that the decisions on one bucket are those of one token bucket, asked one
//     after the other,
//   - that a changed limit is obeyed by every replica in time, and that limits which
//     replicas disagree about mint nothing.
//
// The checks are tested too: they find replicas whose writes lack a condition.
//
// Three real programs, with the shipped defaults, are asked for three times the limit from a
// cold start:
//
//	go test ./test/fleet -run TestColdAtThreeTimesTheLimit -v
package fleet
