// Package fleetsim simulates fleets of replicas on one table, in its tests.
//
// A replica is the shipped code. It has the engine of the DynamoDB store with its lanes, leases and
// breaker, its corrected clock, and the clocks of a process. Decisions have the default deadline and
// policy. Only the loop, the machine's clock and the network are the simulation's. It runs one task
// at a time, in a time that is a number, so that a seed is a history.
//
// Messages are lost, late, doubled and reordered, throttled and cut off. Processes crash, pause,
// and are copied. Machines sleep, stand still, drift, and have their time set.
//
// The answers to callers are compared with the promises, from two sides:
//
//   - In each window of time the admitted tokens, less those given back, are at most the
//     capacity and the refill. Late decisions and those of the policy are counted
//     apart; the late ones are bounded, and paid.
//   - The items lack the admitted tokens, and losses that have a cause. When all is at rest
//     nothing is leased, owed or moving, and a bucket fills to its capacity.
//
// Tests take conditions of the messages away, one at a time, to show that the simulation notices.
package fleetsim
