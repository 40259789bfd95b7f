// Package fleetsim simulates fleets of replicas on one table, in its tests.
//
// A replica is the shipped code: the engine of the DynamoDB store with its lanes, leases
// and breaker, its corrected clock, the clocks of a process, and the deadline and policy
// of a decision by default. Only the loop, the machine's clock and the network are the simulation's.
// It runs one task at a time, in a time that is a number, so that a seed is a history.
//
// Messages are lost, late, doubled and reordered, throttled and cut off. Processes crash, pause,
// and are copied. Machines sleep, stand still, drift, and have their time set.
//
// What callers are told is held against the promises, from two sides:
//
//   - In each window of time the tokens that were admitted, less what was given back, are at
//     most the capacity and the refill. Late decisions and those of the policy are counted
//     apart; the late ones are bounded, and paid.
//   - What the items lack is what callers were told, and losses that have a cause. When all is
//     at rest nothing is leased, owed or moving, and a bucket fills to its capacity.
//
// Tests take conditions of the messages away, one at a time, to show that the simulation notices.
package fleetsim
