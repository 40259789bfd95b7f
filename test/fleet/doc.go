// Package fleet tests the store for a fleet as a fleet uses it: several processes on
// one table of DynamoDB Local, with clocks that disagree, behind a proxy that loses,
// delays, refuses and throttles, and with processes that are killed.
//
// The test binary starts itself for each replica. A replica writes down every
// decision with the span of time that it took, by a clock that all processes share,
// and the test looks at what was written afterwards:
//
//   - that no window of time has more admissions than capacity and refill allow,
//   - that the decisions on one bucket are those of one token bucket, asked one
//     after the other,
//   - that a changed limit is obeyed by every replica in time, and that limits which
//     replicas disagree about mint nothing.
//
// What looks is tested too: it finds replicas whose writes lack a condition.
//
// Three real programs, with the shipped defaults, are asked for three times the limit from a
// cold start:
//
//	go test ./test/fleet -run TestColdAtThreeTimesTheLimit -v
package fleet
